// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
)

// idleFor is how long an agent with nothing to do is looked at: three heartbeats. With a few services only, as in a quick
// look, it is shorter.
const idleFor, idleForFew = 3 * pulseInterval, 2 * time.Second

// restart measures target 4 and a part of 8: how long the agent in B takes until it is in sync again with many imported
// services, what it writes meanwhile, when a change shows that was made while it was away, and what it uses when idle.
func restart(ctx context.Context, b *bench) (err error) {
	w, err := b.world(ctx, 2, b.size, b.say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := b.calibrate(ctx, w.members[0]); err != nil {
		return err
	}
	r := &restartRun{bench: b, w: w}
	if r.subjects, err = w.members[0].subjects(b.size); err != nil {
		return err
	}
	b.say("%d records of services and of slices are written to the hub", b.size)
	if err := publish(ctx, w.members[0], r.subjects); err != nil {
		return err
	}
	stop, err := pulses(ctx, w.members[:1])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := r.tellSizes(ctx); err != nil {
		return err
	}
	b.say("the agent in B imports them")
	if err := r.firstLife(ctx); err != nil {
		return err
	}
	for range b.rounds {
		if err := r.life(ctx); err != nil {
			return err
		}
	}
	r.tell()
	return nil
}

// restartRun are the lives of the agent in B.
type restartRun struct {
	*bench
	w        *world
	subjects []*subject

	inSync, lists, change, first, writes, idle []float64
}

func (r *restartRun) idleFor() time.Duration {
	if r.size < fewServices*fewServices {
		return idleForFew
	}
	return idleFor
}

// firstLife has everything imported.
func (r *restartRun) firstLife(ctx context.Context) error {
	a, err := r.start(ctx)
	if err != nil {
		return err
	}
	feedCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	arrived, err := watchImport(feedCtx, r.w.members[1], r.subjects)
	if err != nil {
		return errors.Join(err, a.stop())
	}
	if err := arrived.await(ctx, 2*roundTimeout); err != nil {
		return errors.Join(err, a.stop())
	}
	_, err = a.awaitWorkedOff(ctx, r.size)
	return errors.Join(err, a.stop())
}

func (r *restartRun) start(ctx context.Context) (*agentProcess, error) {
	return startAgent(ctx, r.w, r.w.members[1], agentOptions{program: r.agent})
}

// life restarts the agent once.
func (r *restartRun) life(ctx context.Context) error {
	listed, err := r.listAll(ctx)
	if err != nil {
		return err
	}
	feedCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, err := watchSightings(feedCtx, r.w.members[1])
	if err != nil {
		return err
	}
	sighted, err := r.changeRecord(ctx, seen)
	if err != nil {
		return err
	}
	before, err := settled(ctx, r.w)
	if err != nil {
		return err
	}
	a, err := r.start(ctx)
	if err != nil {
		return err
	}
	err = r.observe(ctx, a, before, sighted)
	r.lists = append(r.lists, listed.Seconds())
	return errors.Join(err, a.stop())
}

// observe follows a new life of the agent until it has nothing more to do, and for a while after.
func (r *restartRun) observe(ctx context.Context, a *agentProcess, before requests, sighted <-chan time.Time) error {
	done, err := a.awaitWorkedOff(ctx, r.size)
	if err != nil {
		return err
	}
	synced, err := a.cachesSynced()
	if err != nil {
		return err
	}
	shown, err := lag(ctx, synced, sighted)
	if err != nil {
		return err
	}
	after, err := settled(ctx, r.w)
	if err != nil {
		return err
	}
	isWrite := func(q request) bool { return !q.isRead() }
	r.inSync, r.change = append(r.inSync, done.Sub(a.began).Seconds()), append(r.change, shown)
	r.first = append(r.first, synced.Sub(a.began).Seconds())
	r.writes = append(r.writes, float64(after.since(before, r.w.members[1].cluster.Name).total(isWrite)-1)) // the change is one
	if err := a.awaitHeard(ctx, 1, r.size); err != nil {
		return err
	}
	from, err := usageOf(ctx, a.cmd.Process.Pid)
	if err != nil {
		return err
	}
	r.say("in sync %.1f s after its start; what it uses when idle is looked at for %s", done.Sub(a.began).Seconds(), r.idleFor())
	if err := pause(ctx, r.idleFor()); err != nil {
		return err
	}
	to, err := usageOf(ctx, a.cmd.Process.Pid)
	r.idle = append(r.idle, 100*(to.cpu-from.cpu).Seconds()/r.idleFor().Seconds())
	return err
}

func (r *restartRun) tell() {
	r.rows = append(r.rows,
		report.Compare(fmt.Sprintf("restart with %d imported slices until in sync, s; reference: to list and decode the same", r.size), r.inSync, r.lists, report.AtMost(2)),
		report.Within("the same on its own, s", r.inSync, report.AtMost(10)),
		report.Within("writes after the restart, besides the change", r.writes, report.AtMost(0)),
		report.Within("change made meanwhile to slice in B, ms after the caches' sync", r.change, report.AtMost(1000)),
		report.Within("start to first reconcile, s", r.first, report.AtMost(2)),
		report.Within(fmt.Sprintf("idle CPU with %d services, %% of a core", r.size), r.idle, report.AtMost(1)),
	)
}

// changeRecord changes the endpoints of a service, as its exporter's agent would while that of B is away.
func (r *restartRun) changeRecord(ctx context.Context, seen *sightings) (<-chan time.Time, error) {
	m, record := r.w.members[0], &hubv1alpha1.PublishedEndpoints{}
	if err := m.remote.Get(ctx, client.ObjectKeyFromObject(r.subjects[r.size/2].endpoints), record); err != nil {
		return nil, err
	}
	to := address(m.number, firstChange+int(m.changes.Add(1))%firstChange)
	record.Spec.Groups[0].Addresses[0] = hubv1alpha1.IPAddress(to)
	sighted := seen.expect(to)
	return sighted, m.remote.Update(ctx, record)
}

// listAll returns how long a bare client takes to list and decode what the agent in B needs, all kinds at once.
func (r *restartRun) listAll(ctx context.Context) (time.Duration, error) {
	m := r.w.members[1]
	fresh, err := hub.Client(m.toHub) // a connection of its own, as the agent's
	if err != nil {
		return 0, err
	}
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	list := func(c client.Client, lists ...client.ObjectList) {
		for _, l := range lists {
			group.Go(func() error {
				return c.List(ctx, l, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})
			})
		}
	}
	list(m.local, &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}, &mcsv1beta1.ServiceImportList{}, &mcsv1beta1.ServiceExportList{}, &corev1.NamespaceList{})
	list(fresh, &hubv1alpha1.MemberList{}, &hubv1alpha1.HeartbeatList{}, &hubv1alpha1.PublishedServiceList{}, &hubv1alpha1.PublishedEndpointsList{})
	err = group.Wait()
	return time.Since(began), err
}

// pause waits without doing anything, for what has to be looked at over a time.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
