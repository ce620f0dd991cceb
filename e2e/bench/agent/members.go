// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/tombolo-mcs/tombolo/controllers/presence"
	"github.com/tombolo-mcs/tombolo/controllers/publish"
	"github.com/tombolo-mcs/tombolo/e2e/bench/agent/world"
	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
)

// memberSteps are the numbers of members that are measured, each with a hub of its own, up to the size, which is measured too.
var memberSteps = []int{10, 100, 300}

// The full size, and the shortest time for which the hub is measured: three heartbeats of up to 100 members. With more it is one interval.
const (
	membersSize     = 1000
	membersServices = 5000
	membersRate     = 50.0
	membersTime     = 30 * time.Second
	membersStores   = 100
	importers       = 10
)

// For slowTime, etcd runs for slowRuns of each slowPeriod only.
const (
	slowTime     = time.Minute
	slowServices = 500 // with fewer, it is shorter
	slowPeriod   = time.Second
	slowRuns     = slowPeriod / 10
)

// members measures a hub with more and more members. Some members are a connection with a store and a presence of the agents' own code, in
// this process: so the harness decodes for them what their machines would. The others are receivers.
func members(ctx context.Context, b *bench, w *world.World) (err error) {
	var rows []membersRow
	defer func() { err = errors.Join(err, printMembers(rows)) }()
	for _, n := range append(slices.DeleteFunc(slices.Clone(memberSteps), func(n int) bool { return n >= b.size }), b.size) {
		row, err := b.withMembers(ctx, w, n)
		rows = append(rows, row) // what was measured before an error too
		if err != nil {
			return fmt.Errorf("%d members: %w", n, err)
		}
		b.addMembers(row)
		if n == b.size {
			break
		}
		if err := w.Lab.Close(); err != nil {
			return err
		}
		next, err := world.New(ctx, 0, b.log)
		if err != nil {
			return err
		}
		*w = *next
	}
	return nil
}

// membersRun is a hub with a number of members.
type membersRun struct {
	*bench
	w             *world.World
	publishers    []*world.Member
	services      []*scaleService
	connections   []*connection
	receivers     []*world.Receiver
	stopReceivers func()
}

func (b *bench) withMembers(ctx context.Context, w *world.World, n int) (row membersRow, err error) {
	r := &membersRun{bench: b, w: w, stopReceivers: func() {}}
	b.log("the hub admits %d members, which publish %d services", n, b.services)
	if r.publishers, err = w.Admit(ctx, n); err != nil {
		return row, err
	}
	all := newScaleServices(r.publishers)
	r.services = all.add(b.services)
	if err := publishAll(ctx, r.services); err != nil {
		return row, err
	}
	running, cancel := context.WithCancel(ctx)
	var group errgroup.Group
	defer func() {
		cancel()
		for _, c := range r.connections {
			<-c.ended
		}
		r.stopReceivers()
		err = errors.Join(err, group.Wait())
	}()
	row.members, row.services = n, len(r.services)
	if row.connected, err = r.connect(running); err != nil {
		return row, err
	}
	if err := r.withHeartbeats(running, &group, func() error {
		if err := r.measure(ctx, &row); err != nil {
			return err
		}
		return r.slowEtcd(ctx, &row)
	}); err != nil {
		return row, err
	}
	row.reconnected, row.rejects, err = r.restart(ctx)
	return row, err
}

// connect opens all connections, and returns after how many seconds each has read everything.
func (r *membersRun) connect(ctx context.Context) (seconds float64, err error) {
	began := time.Now()
	stores := max(1, min(r.stores, len(r.publishers))) // the lag is measured in a store
	for _, m := range r.publishers[:stores] {
		c, err := openConnection(ctx, m)
		if err != nil {
			return 0, err
		}
		r.connections = append(r.connections, c)
	}
	if r.receivers, r.stopReceivers, err = world.StartReceivers(ctx, r.publishers[stores:], &world.Received{}); err != nil {
		return 0, err
	}
	err = r.awaitAll(ctx, hub.Reachable)
	return time.Since(began).Seconds(), err
}

// awaitAll returns when all members have read everything, or when all have found the hub unreachable.
func (r *membersRun) awaitAll(ctx context.Context, state hub.Reachability) error {
	return errors.Join(awaitConnections(ctx, r.connections, state), awaitConnections(ctx, r.receivers, state))
}

// withHeartbeats calls do while all members send heartbeats. Those of the connections continue until ctx ends.
func (r *membersRun) withHeartbeats(ctx context.Context, group *errgroup.Group, do func() error) error {
	stop, err := world.SendHeartbeats(ctx, r.publishers[len(r.connections):], liveness.Interval(world.HeartbeatInterval, len(r.publishers)))
	if err != nil {
		return err
	}
	return errors.Join(r.renew(ctx, group), do(), stop())
}

// renew starts the heartbeats of the connections until ctx ends, spread over an interval, and returns after the last first one.
func (r *membersRun) renew(ctx context.Context, group *errgroup.Group) error {
	spread := liveness.Interval(world.HeartbeatInterval, len(r.publishers)) / time.Duration(len(r.connections))
	for i, c := range r.connections {
		m := r.publishers[i]
		p := &presence.Presence{
			Cluster: m.ID, ClusterUID: "bench-" + string(m.ID), Claim: presence.NewClaim("bench-"+string(m.ID), string(m.ID)), Interval: world.HeartbeatInterval, Grace: liveness.GracePeriods * world.HeartbeatInterval,
			AbsentTimeout: time.Hour, Store: c.store, Hub: apply.ToHub(c, m.ID.HubNamespace()), Live: c, Progress: publish.NewProgress(),
			Tracker: liveness.NewTracker(world.HeartbeatInterval, liveness.GracePeriods*world.HeartbeatInterval), Clock: clock.RealClock{}, Log: logr.Discard(),
		}
		group.Go(func() error { return p.Start(ctx) })
		if err := world.Pause(ctx, spread); err != nil {
			return err
		}
	}
	return nil
}

// measure measures the hub while endpoints change at a steady rate.
func (r *membersRun) measure(ctx context.Context, row *membersRow) error {
	length := max(membersTime, liveness.Interval(world.HeartbeatInterval, len(r.publishers)))
	r.log("%d members: %.4g changes per second for %s", len(r.publishers), r.rate, length)
	before, err := r.load(ctx)
	if err != nil {
		return err
	}
	var after hubLoad
	made, all, err := r.change(ctx, func() error {
		err := world.Pause(ctx, length)
		var loadErr error
		after, loadErr = r.load(ctx)
		return errors.Join(err, loadErr)
	})
	if err != nil {
		return err
	}
	seconds, used := after.at.Sub(before.at).Seconds(), after.cpu.Since(before.cpu)
	row.rate = made
	row.apiServer, row.etcd, row.harness = 100*used["kube-apiserver"]/seconds, 100*used["etcd"]/seconds, 100*used[world.Harness]/seconds
	row.apiServerMB, row.etcdMB = after.memory["kube-apiserver"], after.memory["etcd"]
	row.heartbeats, row.events = (after.heartbeats-before.heartbeats)/seconds, (after.events-before.events)/seconds
	row.closed = (after.closed - before.closed) / seconds
	row.p50, row.p99 = results.Quantile(all, 0.5), results.Quantile(all, 0.99)
	return nil
}

// change changes endpoints at a steady rate while during runs. When all changes have arrived, it returns how many per second were made, and
// the lags in milliseconds.
func (r *membersRun) change(ctx context.Context, during func() error) (made float64, all []float64, err error) {
	lags := newLags(r.services, r.connections[:min(importers, len(r.connections))])
	stop := world.StartChanges(ctx, r.rate, lags.change)
	err = during()
	made, stopErr := stop()
	if err := errors.Join(err, stopErr); err != nil {
		return 0, nil, err
	}
	all, err = lags.awaitAll(ctx)
	return made, all, err
}

// slowEtcd measures the lag while the hub's etcd is slow, and how long after that all changes have arrived.
func (r *membersRun) slowEtcd(ctx context.Context, row *membersRow) error {
	length, etcd := scaled(slowTime, len(r.services), slowServices), r.w.Hub.Etcd
	r.log("%d members: etcd runs for %s of each %s, for %s", len(r.publishers), slowRuns, slowPeriod, length)
	var ended time.Time
	_, all, err := r.change(ctx, func() error {
		for began := time.Now(); time.Since(began) < length; {
			//nolint:contextcheck // Freeze has a deadline of its own
			if err := errors.Join(etcd.Freeze(), world.Pause(ctx, slowPeriod-slowRuns), etcd.Thaw(), world.Pause(ctx, slowRuns)); err != nil {
				return err
			}
		}
		ended = time.Now()
		return nil
	})
	if err != nil {
		return fmt.Errorf("while etcd is slow: %w", err)
	}
	row.slowP50, row.slowP99, row.recovered = results.Quantile(all, 0.5), results.Quantile(all, 0.99), time.Since(ended).Seconds()
	return nil
}

// restart restarts the hub's API server, and returns how many seconds after its start all were connected again, and the rejected requests.
func (r *membersRun) restart(ctx context.Context) (seconds, rejected float64, err error) {
	r.log("%d members: the API server of the hub stops for %s", len(r.publishers), downTime)
	if err := errors.Join(r.w.Hub.APIServer.Stop(ctx), world.Pause(ctx, downTime)); err != nil {
		return 0, 0, err
	}
	if err := r.awaitAll(ctx, hub.Unreachable); err != nil {
		return 0, 0, err
	}
	began := time.Now() // members may be connected before the harness finds the API server ready
	most, _, err := startHub(ctx, r.w.Hub, r.awaitAll)
	return time.Since(began).Seconds(), most["rejected-requests"], err
}

// hubLoad is what the hub has used and sent up to a time.
type hubLoad struct {
	at                 time.Time
	cpu                world.CPUTimes
	memory             map[string]float64 // MB by program
	heartbeats, events float64
	closed             float64 // watches that did not keep up
}

func (r *membersRun) load(ctx context.Context) (l hubLoad, err error) {
	connection, err := rest.HTTPClientFor(r.w.Hub.Config())
	if err != nil {
		return l, err
	}
	defer connection.CloseIdleConnections()
	m, err := world.ReadMetrics(ctx, connection, r.w.Hub.Config().Host+"/metrics")
	if err != nil {
		return l, err
	}
	const sent = "apiserver_watch_events_total"
	l.heartbeats, l.events = m.Sum(sent, "resource", "heartbeats"), m.Sum(sent)
	l.closed = m.Sum("apiserver_terminated_watchers_total")
	if l.memory, err = world.MemoryOf(r.w.Hub); err != nil {
		return l, err
	}
	l.at = time.Now()
	l.cpu, err = world.MeasureCPU(r.w)
	return l, err
}
