// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tombolo-mcs/tombolo/e2e/bench/agent/world"
	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
	"github.com/tombolo-mcs/tombolo/internal/hub"
)

// The full size: so many services, other members, and changes per second for scaleTime.
const (
	scaleSize       = 10_000
	scalePublishers = 99
	fewPublishers   = 6 // enough for services of several exporters
	scaleRate       = 325.0
	scaleTime       = 5 * time.Minute
)

// Targets.
const (
	mostPerEndpoint  = 0.6 // KB of memory
	mostQueueGrowth  = 10  // keys
	mostMemoryGrowth = 1.1
	verifiedImports  = 200
)

// fillSteps are the shares of all services after whose import memory is measured: 25,000, 100,000 and 250,000 endpoints.
var fillSteps = []float64{0.1, 0.4, 1}

// scale measures one agent with 10,000 services and 250,000 endpoints of 99 other members, of which 325 change per second,
// while 99 receivers replace the other agents.
func scale(ctx context.Context, b *bench, w *world.World) (err error) {
	r := &scaleRun{bench: b, w: w, importer: w.Members[0]}
	n := max(fewPublishers, min(scalePublishers, scalePublishers*b.size/scaleSize))
	b.log("the hub admits %d more members", n)
	if r.publishers, err = w.Admit(ctx, n); err != nil {
		return err
	}
	r.services = newScaleServices(r.publishers)
	stop, err := world.SendHeartbeats(ctx, r.publishers, world.HeartbeatInterval)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	stopAgents, err := w.StartAgents(ctx, b.program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopAgents()) }()
	if err := r.fill(ctx); err != nil {
		return err
	}
	if err := r.changes(ctx); err != nil {
		return err
	}
	var some []*scaleService
	for i := 0; i < b.size; i += max(1, b.size/verifiedImports) {
		some = append(some, r.services.all[i])
	}
	b.log("compare %d imports with what was published", len(some))
	return verify(ctx, r.importer, some)
}

type scaleRun struct {
	*bench
	w          *world.World
	importer   *world.Member
	publishers []*world.Member
	services   *scaleServices
}

// fill publishes the services in steps and measures the agent's memory after the import of each.
func (r *scaleRun) fill(ctx context.Context) error {
	constant := min(5*time.Second, 5*time.Second*time.Duration(r.size)/manyServices+500*time.Millisecond)
	idle, err := r.importer.Agent.CollectedMB(ctx, constant)
	if err != nil {
		return err
	}
	r.log("memory of the idle agent: %.1f MB", idle)
	for _, step := range fillSteps {
		began := time.Now()
		if err := r.publishAndImport(ctx, r.services.add(int(step*float64(r.size)))); err != nil {
			return err
		}
		n := r.services.endpoints()
		now, err := r.importer.Agent.CollectedMB(ctx, constant)
		if err != nil {
			return err
		}
		r.log("%d services with %d endpoints are imported after %.0f s; memory of the agent: %.1f MB", len(r.services.all), n, time.Since(began).Seconds(), now)
		name := fmt.Sprintf("Scale/endpoints=%d", n)
		r.Add(name, agent, "resident-MB", now)
		r.Add(name, agent, "KB/endpoint", 1000*(now-idle)/float64(n))
		r.Limit(name, "KB/endpoint", agent, results.AtMost(mostPerEndpoint))
	}
	if r.heapProfile {
		return r.importer.Agent.WriteProfile(ctx, "heap?gc=1", filepath.Join(outFolder, "bench-agent-heap.pprof"))
	}
	return nil
}

// publishAndImport publishes services, and returns when all are imported and the agent is idle.
func (r *scaleRun) publishAndImport(ctx context.Context, services []*scaleService) error {
	o, stop, err := world.Observe(ctx, r.importer)
	defer stop()
	if err != nil {
		return err
	}
	for _, s := range services {
		o.Expect(world.ImportKey(s.name), world.ImportKey(s.name))
	}
	if err := publishAll(ctx, services); err != nil {
		return err
	}
	if _, err := o.AwaitAll(ctx, 3*world.RoundTimeout); err != nil {
		return err
	}
	return r.importer.Agent.AwaitIdle(ctx)
}

// changes updates records at a steady rate, and measures the agent meanwhile.
func (r *scaleRun) changes(ctx context.Context) (err error) {
	seen := &world.Received{}
	receivers, stopReceivers, err := world.StartReceivers(ctx, r.publishers, seen)
	defer stopReceivers()
	if err != nil {
		return err
	}
	if err := awaitConnections(ctx, receivers, hub.Reachable); err != nil {
		return err
	}
	desired := max(10, min(scaleRate, scaleRate*float64(r.size)/scaleSize))
	rate, err := r.sustainedRate(ctx, desired)
	if err != nil {
		return err
	}
	o, stopObserver, err := world.Observe(ctx, r.importer)
	defer stopObserver()
	if err != nil {
		return err
	}
	length := scaled(scaleTime, r.size, scaleSize)
	r.log("%.0f changes per second for %s", rate, length)
	before, err := world.MeasureCPU(r.w)
	if err != nil {
		return err
	}
	events, bytes := seen.Events.Load(), seen.Bytes.Load()
	stop := world.StartChanges(ctx, rate, r.change(o))
	sampled, err := r.sample(ctx, length)
	made, stopErr := stop()
	if err := errors.Join(err, stopErr); err != nil {
		return err
	}
	after, err := world.MeasureCPU(r.w)
	if err != nil {
		return err
	}
	all, err := o.AwaitAll(ctx, world.ArrivalTimeout)
	if err != nil {
		return err
	}
	latencies := make([]float64, len(all))
	for i, c := range all {
		latencies[i] = c.Latency()
	}
	name := fmt.Sprintf("Scale/endpoints=%d", r.services.endpoints())
	r.Add(name, agent, "changes/s", made)
	r.Limit(name, "changes/s", agent, results.AtLeast(onTime*desired))
	r.Add(name, agent, "watch-events/s", float64(seen.Events.Load()-events)/length.Seconds())
	r.Add(name, agent, "watch-MB/s", float64(seen.Bytes.Load()-bytes)/1e6/length.Seconds())
	r.Add(name, agent, "p50-ms", results.Quantile(latencies, 0.5))
	r.Add(name, agent, "p99-ms", results.Quantile(latencies, 0.99))
	r.Add(name, agent, "max-ms", results.Quantile(latencies, 1))
	r.Limit(name, "p99-ms", agent, results.AtMost(1000))
	r.addSamples(name, sampled)
	r.addCPU(name, after.Since(before).Percent())
	return nil
}

// sample samples the importer's agent, and writes a profile of its CPU if that is asked for.
func (r *scaleRun) sample(ctx context.Context, length time.Duration) (all []sample, err error) {
	group, ctx := errgroup.WithContext(ctx)
	if r.cpuProfile {
		group.Go(func() error {
			return r.importer.Agent.WriteProfile(ctx, fmt.Sprintf("profile?seconds=%.0f", length.Seconds()), filepath.Join(outFolder, "bench-agent-cpu.pprof"))
		})
	}
	group.Go(func() (err error) {
		all, err = samplesOf(ctx, r.importer.Agent, length)
		return err
	})
	err = group.Wait()
	return all, err
}

// change returns a function that changes all slices that an import uses, in an order that differs from that of their
// creation: steps of a prime reach all of them.
func (r *scaleRun) change(o *world.Observer) func(context.Context, int) error {
	slices := r.services.importedSlices()
	return func(ctx context.Context, i int) error { return slices[i*7919%len(slices)].change(ctx, o) }
}

// sustainedRate returns the rate of changes that this machine sustains with the agent and all receivers. An agent that is
// late does not reduce it, unless it uses the CPU that the others need.
func (r *scaleRun) sustainedRate(ctx context.Context, desired float64) (float64, error) {
	o, stop, err := world.Observe(ctx, r.importer)
	defer stop()
	if err != nil {
		return 0, err
	}
	return r.sustained(ctx, r.w, desired, scaled(rateTime, r.size, scaleSize), r.change(o), func(ctx context.Context) error {
		_, err := o.AwaitAll(ctx, world.ArrivalTimeout)
		return err
	})
}

// sample is what an agent uses at a time, and what waits in its queues.
type sample struct{ residentMB, queued float64 }

// samplesOf samples the agent 60 times in a time.
func samplesOf(ctx context.Context, a *world.AgentProcess, length time.Duration) ([]sample, error) {
	const n = 60
	var all []sample
	began := time.Now()
	for i := 1; i <= n; i++ {
		if err := world.Pause(ctx, time.Until(began.Add(length*time.Duration(i)/n))); err != nil {
			return nil, err
		}
		m, err := a.ReadMetrics(ctx)
		if err != nil {
			return nil, err
		}
		resident, err := a.ResidentMB()
		if err != nil {
			return nil, err
		}
		all = append(all, sample{resident, m.Sum("workqueue_depth")})
	}
	return all, nil
}

// addSamples compares the first fifth of the time with the last one.
func (r *scaleRun) addSamples(name string, all []sample) {
	first, last := firstAndLast(all, func(s sample) float64 { return s.queued })
	r.Add(name, agent, "queue-growth", last-first)
	r.Limit(name, "queue-growth", agent, results.AtMost(mostQueueGrowth))
	first, last = firstAndLast(all, func(s sample) float64 { return s.residentMB })
	r.Add(name, agent, "memory-growth", last/first)
	r.Limit(name, "memory-growth", agent, results.AtMost(mostMemoryGrowth))
}

func firstAndLast(all []sample, of func(sample) float64) (first, last float64) {
	var values []float64
	for _, s := range all {
		values = append(values, of(s))
	}
	n := max(1, len(all)/5)
	return results.Median(values[:n]), results.Median(values[len(values)-n:])
}

// addCPU adds the shares of the CPU; the agent's must be the smallest.
func (r *scaleRun) addCPU(name string, percent map[string]float64) {
	programs := map[string]string{"kube-apiserver": "kube-apiserver", "etcd": "etcd", world.Harness: world.Harness, "tombolo-agent": agent}
	for program, who := range programs {
		r.Add(name, who, "cpu-percent", percent[program])
	}
	r.Limit(name, "cpu-percent", agent, results.AtMost(min(percent["kube-apiserver"], percent["etcd"], percent[world.Harness])))
}
