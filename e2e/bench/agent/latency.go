// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
)

// latencyWidth is how many writes the floor may have in flight where latencies are measured; few are.
const latencyWidth = 16

// The changes of endpoints are spread over probes; those in the background over a crowd of other services.
const probes, crowd, backgroundRate = 100, 500, 200

// latency measures targets 2 and 3: how long a change of endpoints takes from A to the slice in B, quiet and with others
// in the background, and a new export to the import in B. The clock starts when A's API server has taken the change, and
// stops when a watch in B brings the result. So the floor's chain is: watch event, write, watch event, write, watch event.
func latency(ctx context.Context, b *bench) (err error) {
	r := &latencyRun{bench: b, probes: min(probes, b.size), crowd: min(crowd, 2*b.size), rate: min(backgroundRate, b.size)}
	all := r.probes + r.crowd + b.size
	if r.w, err = b.world(ctx, 2, all, b.say); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.w.close()) }()
	if err := b.calibrate(ctx, r.w.members[0]); err != nil {
		return err
	}
	if r.subjects, err = r.w.members[0].subjects(all); err != nil {
		return err
	}
	b.say("%d Services are written, with %d endpoints each", all, perSlice)
	if err := r.w.members[0].fill(ctx, r.subjects); err != nil {
		return err
	}
	wanted := r.rate
	if r.rate, err = r.carried(ctx); err != nil {
		return err
	}
	var agents, floors series
	for round := range b.laps {
		floor, err := r.floor(ctx)
		if err != nil {
			return err
		}
		b.say("round %d of %d: floor %s", round+1, b.rounds, floor)
		ours, err := r.agents(ctx)
		if err != nil {
			return err
		}
		b.say("round %d of %d: agents %s", round+1, b.rounds, ours)
		floors, agents = append(floors, floor), append(agents, ours)
	}
	b.rows = append(b.rows, slices.Concat(
		compare("change to slice in B, quiet", agents, floors, func(l lap) []float64 { return l.quiet }, report.AtMost(1.5), report.AtMost(2)),
		compare("change to slice in B, busy", agents, floors, func(l lap) []float64 { return l.busy }, nil, report.AtMost(3)),
		compare("export to import in B, quiet", agents, floors, func(l lap) []float64 { return l.exports }, nil, report.AtMost(3)),
	)...)
	b.rows = append(b.rows, report.Compare("other changes a second where it is busy; reference: wanted", []float64{float64(r.rate)}, []float64{float64(wanted)}, nil))
	return b.plot("distribution", report.Plot{
		Title: "Latency from a change in A to what B makes of it", X: "ms", Y: "% that take at most so long", XScale: report.Logarithmic,
		Curves: []report.Curve{
			agents.distribution("agents, quiet", func(l lap) []float64 { return l.quiet }), floors.distribution("floor, quiet", func(l lap) []float64 { return l.quiet }),
			agents.distribution("agents, busy", func(l lap) []float64 { return l.busy }), floors.distribution("floor, busy", func(l lap) []float64 { return l.busy }),
			agents.distribution("agents, exports", func(l lap) []float64 { return l.exports }), floors.distribution("floor, exports", func(l lap) []float64 { return l.exports }),
		},
	})
}

// latencyRun are the rounds of targets 2 and 3.
type latencyRun struct {
	*bench
	w                   *world
	probes, crowd, rate int
	subjects            []*subject // the probes, the crowd, and those that are not exported at first
}

// lap holds the latencies of a round, sorted, in milliseconds.
type lap struct{ quiet, busy, exports []float64 }

func (l lap) String() string {
	return fmt.Sprintf("p50/p99: quiet %.1f/%.1f ms, busy %.1f/%.1f ms, exports %.1f/%.1f ms",
		report.Quantile(l.quiet, 0.5), report.Quantile(l.quiet, 0.99), report.Quantile(l.busy, 0.5), report.Quantile(l.busy, 0.99),
		report.Quantile(l.exports, 0.5), report.Quantile(l.exports, 0.99))
}

type series []lap

func (s series) quantiles(of func(lap) []float64, q float64) []float64 {
	result := make([]float64, len(s))
	for i, l := range s {
		result[i] = report.Quantile(of(l), q)
	}
	return result
}

// distribution returns that of all rounds together.
func (s series) distribution(name string, of func(lap) []float64) report.Curve {
	var all []float64
	for _, l := range s {
		all = append(all, of(l)...)
	}
	slices.Sort(all)
	return report.Distribution(name, all)
}

// compare returns the rows of one kind of latency: each round has its quantiles, of which the medians are compared.
func compare(metric string, agents, floors series, of func(lap) []float64, p50, p99 *report.Target) []report.Row {
	row := func(name string, q float64, target *report.Target) report.Row {
		return report.Compare(metric+", "+name+", ms", agents.quantiles(of, q), floors.quantiles(of, q), target)
	}
	return []report.Row{row("p50", 0.5, p50), row("p99", 0.99, p99), row("max", 1, nil)}
}

func (r *latencyRun) floor(ctx context.Context) (lap, error) {
	working, stop, err := startBare(ctx, r.w, r.subjects, latencyWidth, r.say)
	if err != nil {
		return lap{}, err
	}
	result, err := r.lap(working)
	return result, errors.Join(err, stop(), r.w.wipe(ctx))
}

func (r *latencyRun) agents(ctx context.Context) (lap, error) {
	o, end, err := r.agentOptions(ctx)
	if err != nil {
		return lap{}, err
	}
	running, err := startAgents(ctx, r.w, r.w.members, o)
	if err != nil {
		return lap{}, errors.Join(err, end())
	}
	result, err := r.lap(ctx)
	return result, errors.Join(err, running.stop(), end(), r.w.wipe(ctx))
}

// lap measures whoever is at work.
func (r *latencyRun) lap(ctx context.Context) (result lap, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	known := r.subjects[:r.probes+r.crowd]
	if _, err := r.exportAll(ctx, r.w, known); err != nil {
		return lap{}, err
	}
	seen, err := watchSightings(ctx, r.w.members[1])
	if err != nil {
		return lap{}, err
	}
	probes, err := newChanger(ctx, r.w.members[0], r.subjects[:r.probes])
	if err != nil {
		return lap{}, err
	}
	others, err := newChanger(ctx, r.w.members[0], r.subjects[r.probes:len(known)])
	if err != nil {
		return lap{}, err
	}
	if result.quiet, err = r.changes(ctx, probes, seen); err != nil {
		return lap{}, err
	}
	stop := others.background(ctx, r.rate)
	result.busy, err = r.changes(ctx, probes, seen)
	rate, stopErr := stop()
	if err := errors.Join(err, stopErr); err != nil {
		return lap{}, err
	}
	if rate < 0.9*float64(r.rate) && r.size >= r.rate {
		r.say("in the background were %.0f changes a second only: this machine carries no more", rate)
	}
	result.exports, err = r.exports(ctx, seen)
	return result, err
}

// changes returns the sorted latencies of changes, one after the other.
func (r *latencyRun) changes(ctx context.Context, c *changer, seen *sightings) ([]float64, error) {
	var result []float64
	for i := range r.size {
		var sighted <-chan time.Time
		taken, err := c.change(ctx, i%len(c.slices), func(address string) { sighted = seen.expect(address) })
		if err != nil {
			return nil, err
		}
		took, err := lag(ctx, taken, sighted)
		if err != nil {
			return nil, err
		}
		result = append(result, took)
	}
	slices.Sort(result)
	return result, nil
}

// exports returns the sorted latencies of new exports, one after the other.
func (r *latencyRun) exports(ctx context.Context, seen *sightings) ([]float64, error) {
	var result []float64
	for _, s := range r.subjects[r.probes+r.crowd:] {
		sighted := seen.expect(s.export.Name)
		if err := r.w.members[0].kube.Create(ctx, s.export.DeepCopy()); err != nil {
			return nil, err
		}
		took, err := lag(ctx, time.Now(), sighted)
		if err != nil {
			return nil, err
		}
		result = append(result, took)
	}
	slices.Sort(result)
	return result, nil
}
