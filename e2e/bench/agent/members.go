// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/tombolo-mcs/tombolo/controllers/presence"
	"github.com/tombolo-mcs/tombolo/controllers/publication"
	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
)

// memberSteps are the numbers of members that are measured, each with a hub of its own, up to the size, which is measured too.
var memberSteps = []int{10, 100, 300}

// The full size, and the shortest time for which the hub is measured: three heartbeats of up to 100 members. With more it is one interval.
const (
	membersSize     = 1000
	membersServices = 5000
	membersRate     = 50.0
	membersTime     = 30 * time.Second
	importers       = 10
)

// membersRow is what is measured with a number of members. CPU is in percent of one core.
type membersRow struct {
	members, services               int
	rate                            float64
	apiServer, etcd, harness        float64 // CPU
	apiServerMB, etcdMB             float64
	heartbeats, events              float64 // watch events per second
	p50, p99                        float64 // lag in milliseconds
	connected, reconnected, rejects float64
}

// members measures a hub with more and more members. Each member is a connection with a store and a presence of the agents' own
// code, in this process: so the harness decodes for all of them what their machines would.
func members(ctx context.Context, b *bench, w *world) (err error) {
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
		if err := w.lab.Close(); err != nil {
			return err
		}
		next, err := newWorld(ctx, 0, b.log)
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
	w           *world
	publishers  []*member
	services    []*scaleService
	connections []*connection
}

func (b *bench) withMembers(ctx context.Context, w *world, n int) (row membersRow, err error) {
	r := &membersRun{bench: b, w: w}
	b.log("the hub admits %d members, which publish %d services", n, b.services)
	if r.publishers, err = w.admit(ctx, n); err != nil {
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
		err = errors.Join(err, group.Wait())
	}()
	row.members, row.services = n, len(r.services)
	if row.connected, err = r.connect(running); err != nil {
		return row, err
	}
	if err := r.renew(running, &group); err != nil {
		return row, err
	}
	if err := r.measure(ctx, &row); err != nil {
		return row, err
	}
	row.reconnected, row.rejects, err = r.restart(ctx)
	return row, err
}

// connect opens all connections, and returns after how many seconds each has read everything.
func (r *membersRun) connect(ctx context.Context) (float64, error) {
	began := time.Now()
	for _, m := range r.publishers {
		c, err := openConnection(ctx, m)
		if err != nil {
			return 0, err
		}
		r.connections = append(r.connections, c)
	}
	err := awaitConnections(ctx, r.connections, hub.Reachable)
	return time.Since(began).Seconds(), err
}

// renew starts the heartbeats of all members until ctx ends, spread over an interval, and returns after the last first one.
func (r *membersRun) renew(ctx context.Context, group *errgroup.Group) error {
	spread := liveness.Interval(heartbeatInterval, len(r.publishers)) / time.Duration(len(r.publishers))
	for i, m := range r.publishers {
		c := r.connections[i]
		p := &presence.Presence{
			Cluster: m.id, ClusterUID: "bench-" + string(m.id), Interval: heartbeatInterval, Grace: liveness.GracePeriods * heartbeatInterval,
			AbsentTimeout: time.Hour, Store: c.store, Hub: apply.ToHub(c, m.id.HubNamespace()), Live: c, Progress: publication.NewProgress(),
			Tracker: liveness.NewTracker(heartbeatInterval, liveness.GracePeriods*heartbeatInterval), Clock: clock.RealClock{}, Log: logr.Discard(),
		}
		group.Go(func() error { return p.Start(ctx) })
		if err := pause(ctx, spread); err != nil {
			return err
		}
	}
	return nil
}

// measure measures the hub while endpoints change at a steady rate.
func (r *membersRun) measure(ctx context.Context, row *membersRow) error {
	lags := newLags(r.services, r.connections[:min(importers, len(r.connections))])
	length := max(membersTime, liveness.Interval(heartbeatInterval, len(r.publishers)))
	r.log("%d members: %.4g changes per second for %s", len(r.publishers), r.rate, length)
	before, err := r.load(ctx)
	if err != nil {
		return err
	}
	stop := startChanges(ctx, r.rate, lags.change)
	err = pause(ctx, length)
	made, stopErr := stop()
	after, loadErr := r.load(ctx)
	if err := errors.Join(err, stopErr, loadErr); err != nil {
		return err
	}
	seconds, used := after.at.Sub(before.at).Seconds(), after.cpu.since(before.cpu)
	row.rate = made
	row.apiServer, row.etcd, row.harness = 100*used["kube-apiserver"]/seconds, 100*used["etcd"]/seconds, 100*used[harness]/seconds
	row.apiServerMB, row.etcdMB = after.memory["kube-apiserver"], after.memory["etcd"]
	row.heartbeats, row.events = (after.heartbeats-before.heartbeats)/seconds, (after.events-before.events)/seconds
	all, err := lags.awaitAll(ctx)
	row.p50, row.p99 = results.Quantile(all, 0.5), results.Quantile(all, 0.99)
	return err
}

// restart restarts the hub's API server, and returns how many seconds after its start all were connected again, and the rejected requests.
func (r *membersRun) restart(ctx context.Context) (seconds, rejected float64, err error) {
	r.log("%d members: the API server of the hub stops for %s", len(r.publishers), downTime)
	if err := errors.Join(r.w.hub.APIServer.Stop(ctx), pause(ctx, downTime)); err != nil {
		return 0, 0, err
	}
	if err := awaitConnections(ctx, r.connections, hub.Unreachable); err != nil {
		return 0, 0, err
	}
	began := time.Now() // members may be connected before the harness finds the API server ready
	most, _, err := startHub(ctx, r.w.hub, r.connections)
	return time.Since(began).Seconds(), most["rejected-requests"], err
}

// hubLoad is what the hub has used and sent up to a time.
type hubLoad struct {
	at                 time.Time
	cpu                cpuTimes
	memory             map[string]float64 // MB by program
	heartbeats, events float64
}

func (r *membersRun) load(ctx context.Context) (l hubLoad, err error) {
	connection, err := rest.HTTPClientFor(r.w.hub.Config())
	if err != nil {
		return l, err
	}
	defer connection.CloseIdleConnections()
	m, err := readMetrics(ctx, connection, r.w.hub.Config().Host+"/metrics")
	if err != nil {
		return l, err
	}
	const sent = "apiserver_watch_events_total"
	l.heartbeats, l.events = m.sum(sent, "resource", "heartbeats"), m.sum(sent)
	if l.memory, err = memoryOf(r.w.hub); err != nil {
		return l, err
	}
	l.at = time.Now()
	l.cpu, err = measureCPU(r.w)
	return l, err
}

// addMembers adds the figures of a row.
func (b *bench) addMembers(row membersRow) {
	name := fmt.Sprintf("Members/members=%d", row.members)
	for program, values := range map[string]map[string]float64{
		"kube-apiserver": {
			"cpu-percent": row.apiServer, "resident-MB": row.apiServerMB, "heartbeat-events/s": row.heartbeats, "watch-events/s": row.events,
			"rejected-requests": row.rejects,
		},
		"etcd":  {"cpu-percent": row.etcd, "resident-MB": row.etcdMB},
		harness: {"cpu-percent": row.harness},
		agent: {
			"changes/s": row.rate, "p50-ms": row.p50, "p99-ms": row.p99, "connected-s": row.connected, "reconnected-s": row.reconnected,
		},
	} {
		for unit, value := range values {
			b.Add(name, program, unit, value)
		}
	}
}

// printMembers prints a line for each number of members.
func printMembers(rows []membersRow) error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "members\tservices\tchanges/s\tCPU % API server\tetcd\tharness\tMB API server\tetcd\theartbeat events/s\tall events/s\tlag p50 ms\tp99\tconnected s\treconnected s\trejected\t")
	for _, r := range rows {
		fmt.Fprintf(table, "%d\t%d\t%.1f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\t\n", r.members, r.services, r.rate,
			r.apiServer, r.etcd, r.harness, r.apiServerMB, r.etcdMB, r.heartbeats, r.events, r.p50, r.p99, r.connected, r.reconnected, r.rejects)
	}
	return table.Flush()
}
