// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/bench/agent/world"
	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
)

// latencyWidth is how many writes the baseline may have in flight; few are.
const latencyWidth = 16

// Changes are measured in probes, while others are changed in the background, so many per second. To find the rate that
// the machine sustains, changes are made for rateTime.
const probes, backgroundServices, backgroundRate, rateTime = 100, 500, 200, 15 * time.Second

const latencyIdle, latencyBusy, latencyExport = "Latency/change=endpoints/load=idle", "Latency/change=endpoints/load=busy", "Latency/change=export/load=idle"

// latency measures the time of a change of endpoints from A to the slice in B, idle and with others in the background, and
// of a new export to the import in B. It begins when A's API server has accepted the change, and ends when a watch in B
// returns the result. So the baseline's steps are: watch event, write, watch event, write, watch event.
func latency(ctx context.Context, b *bench, w *world.World) error {
	r := &latencyRun{bench: b, w: w, rate: float64(min(backgroundRate, b.size))}
	n, m := min(probes, b.size), min(backgroundServices, 2*b.size)
	all, err := world.CreateServices(ctx, b.log, w.Members[0], n+m+b.size)
	if err != nil {
		return err
	}
	r.exported, r.probes, r.background, r.exports = all[:n+m], all[:n], all[n:n+m], all[n+m:]
	if r.rate, err = r.sustainedRate(ctx); err != nil {
		return err
	}
	for round := range b.rounds {
		b.log("round %d of %d", round+1, b.rounds)
		working, stop, err := world.StartBare(ctx, w, all, latencyWidth)
		if err != nil {
			return err
		}
		err = r.round(working, baseline)
		if err := errors.Join(err, stop(), w.CleanUp(ctx)); err != nil {
			return err
		}
		if stop, err = w.StartAgents(ctx, b.program); err != nil {
			return err
		}
		err = r.round(ctx, agent)
		if err := errors.Join(err, stop(), w.CleanUp(ctx)); err != nil {
			return err
		}
	}
	b.Compare(latencyIdle, "p50-ms", agent, baseline, results.AtMost(1.5))
	b.Compare(latencyIdle, "p99-ms", agent, baseline, results.AtMost(2))
	b.Compare(latencyBusy, "p99-ms", agent, baseline, results.AtMost(3))
	b.Compare(latencyExport, "p99-ms", agent, baseline, results.AtMost(3))
	return nil
}

type latencyRun struct {
	*bench
	w                            *world.World
	rate                         float64 // of changes in the background
	exported, probes, background []*world.TestService
	exports                      []*world.TestService // those that are exported one by one
}

// round measures the agents or the baseline, which are running.
func (r *latencyRun) round(ctx context.Context, who string) error {
	if _, err := world.ExportAll(ctx, r.w, r.exported); err != nil {
		return err
	}
	observer, stopObserver, err := world.Observe(ctx, r.w.Members[1])
	defer stopObserver()
	if err != nil {
		return err
	}
	probed, err := world.ReadSlices(ctx, r.w.Members[0], r.probes)
	if err != nil {
		return err
	}
	background, err := world.ReadSlices(ctx, r.w.Members[0], r.background)
	if err != nil {
		return err
	}
	change := func(i int) (float64, error) { return probed.ChangeSeen(ctx, i, observer) }
	if err := r.measureEach(ctx, latencyIdle, who, r.size, change); err != nil {
		return err
	}
	stop := world.StartChanges(ctx, r.rate, background.Change)
	err = r.measureEach(ctx, latencyBusy, who, r.size, change)
	made, stopErr := stop()
	if err := errors.Join(err, stopErr); err != nil {
		return err
	}
	r.Add(latencyBusy, who, "changes/s", made)
	return r.measureEach(ctx, latencyExport, who, r.size, func(i int) (float64, error) {
		key := world.ImportKey(r.exports[i].Export.Name)
		return observer.LatencyOf(ctx, key, key, func() error { return r.w.Members[0].Admin.Create(ctx, r.exports[i].Export.DeepCopy()) })
	})
}

// measureEach makes n changes, one after the other, and adds the quantiles of their latencies.
func (b *bench) measureEach(ctx context.Context, name, who string, n int, change func(int) (float64, error)) error {
	latencies := make([]float64, n)
	for i := range latencies {
		var err error
		if latencies[i], err = change(i); err != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	p50, p99 := results.Quantile(latencies, 0.5), results.Quantile(latencies, 0.99)
	b.log("%s of %s: p50 %.1f ms, p99 %.1f ms", name, who, p50, p99)
	b.Add(name, who, "p50-ms", p50)
	b.Add(name, who, "p99-ms", p99)
	b.Add(name, who, "max-ms", slices.Max(latencies))
	return nil
}

// sustainedRate returns how many changes per second the baseline on this machine sustains in the background, at most the
// desired rate: at a higher rate, only a growing queue would be measured.
func (r *latencyRun) sustainedRate(ctx context.Context) (rate float64, err error) {
	working, stop, err := world.StartBare(ctx, r.w, r.exported, latencyWidth)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop(), r.w.CleanUp(ctx)) }()
	if _, err := world.ExportAll(working, r.w, r.exported); err != nil {
		return 0, err
	}
	background, err := world.ReadSlices(working, r.w.Members[0], r.background)
	if err != nil {
		return 0, err
	}
	observer, stopObserver, err := world.Observe(working, r.w.Members[1])
	defer stopObserver()
	if err != nil {
		return 0, err
	}
	length := max(time.Second, rateTime*time.Duration(min(r.size, backgroundRate))/(2*backgroundRate))
	// A change of each worker of the baseline arrives after those before it.
	return r.sustained(working, r.w, r.rate, length, background.Change, func(ctx context.Context) error {
		for i := range min(latencyWidth, len(background.Slices)) {
			if _, err := background.ChangeSeen(ctx, i, observer); err != nil {
				return err
			}
		}
		return nil
	})
}

// A machine sustains a rate if it makes this share of the changes, and uses at most this share of its CPU, so that API
// servers answer in time. If it does not, at most so many lower rates are tried.
const onTime, mostUtilization, mostAttempts, leastRate = 0.95, 0.85, 8, 1.0

// sustained returns the rate of changes that this machine sustains, at most the desired one. Each rate is tried for a length of time;
// settle returns when the changes have arrived.
func (b *bench) sustained(
	ctx context.Context, w *world.World, desired float64, length time.Duration,
	change func(context.Context, int) error, settle func(context.Context) error,
) (float64, error) {
	current := desired
	for range mostAttempts {
		before, err := world.MeasureCPU(w)
		if err != nil {
			return 0, err
		}
		began := time.Now()
		stop := world.StartChanges(ctx, current, change)
		err = world.Pause(ctx, length)
		made, stopErr := stop()
		if err := errors.Join(err, stopErr); err != nil {
			return 0, err
		}
		took := time.Since(began)
		after, err := world.MeasureCPU(w)
		if err != nil {
			return 0, err
		}
		if err := settle(ctx); err != nil {
			return 0, err
		}
		utilization := after.Since(before).Utilization(took)
		b.log("at %.0f changes per second, %.0f were made and %.0f%% of the CPU was used", current, made, 100*utilization)
		next := reduced(current, made, utilization)
		if next == current {
			break
		}
		current = next
	}
	return current, nil
}

// reduced returns the next rate to try after one at which so many changes per second were made: the same if the machine
// sustained it.
func reduced(current, made, utilization float64) float64 {
	if made >= onTime*current && utilization <= mostUtilization {
		return current
	}
	return max(leastRate, onTime*min(made, current*mostUtilization/max(utilization, mostUtilization)))
}
