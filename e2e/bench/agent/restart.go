// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/bench/agent/world"
	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// restart measures how long the agent in B takes until it is in sync again with many imported services, what it writes
// meanwhile, when a change arrives that was made while it was down, and the CPU that it uses when idle.
func restart(ctx context.Context, b *bench, w *world.World) (err error) {
	r := &restartRun{bench: b, exporter: w.Members[0], importer: w.Members[1], w: w}
	if r.services, err = r.exporter.NewServices(b.size); err != nil {
		return err
	}
	b.log("publish %d services with a slice each", b.size)
	if err := world.Each(ctx, world.SetupWidth, r.services, func(ctx context.Context, s *world.TestService) error {
		return world.CreateRecords(ctx, r.exporter, s.Endpoints, s.Record)
	}); err != nil {
		return err
	}
	stop, err := world.SendHeartbeats(ctx, w.Members[:1], world.HeartbeatInterval)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := r.logSizes(ctx); err != nil {
		return err
	}
	b.log("the agent in B imports them")
	if err := r.firstImport(ctx); err != nil {
		return err
	}
	for range b.rounds {
		if err := r.round(ctx); err != nil {
			return err
		}
	}
	b.Compare("Restart", "sync-s", agent, baseline, results.AtMost(2))
	b.Limit("Restart", "sync-s", agent, results.AtMost(10))
	b.Limit("Restart", "writes", agent, results.AtMost(0))
	b.Limit("Restart", "change-ms", agent, results.AtMost(1000))
	b.Limit("Restart", "first-reconcile-s", agent, results.AtMost(2))
	b.Limit("Restart", "idle-cpu-percent", agent, results.AtMost(1))
	return nil
}

type restartRun struct {
	*bench
	w                  *world.World
	exporter, importer *world.Member
	services           []*world.TestService
}

func (r *restartRun) firstImport(ctx context.Context) error {
	o, stop, err := world.Observe(ctx, r.importer)
	defer stop()
	if err != nil {
		return err
	}
	o.ExpectImports(r.services)
	a, err := r.w.StartAgent(ctx, r.program, r.importer)
	if err != nil {
		return err
	}
	_, err = o.AwaitAll(ctx, 2*world.RoundTimeout)
	if err == nil {
		_, err = a.AwaitSynced(ctx, r.size)
	}
	return errors.Join(err, a.End(ctx))
}

func (r *restartRun) round(ctx context.Context) error {
	listed, err := r.listAll(ctx)
	if err != nil {
		return err
	}
	o, stop, err := world.Observe(ctx, r.importer)
	defer stop()
	if err != nil {
		return err
	}
	changed, err := r.changeRecord(ctx, o)
	if err != nil {
		return err
	}
	before, err := world.SettledRequests(ctx, r.w)
	if err != nil {
		return err
	}
	a, err := r.w.StartAgent(ctx, r.program, r.importer)
	if err != nil {
		return err
	}
	r.Add("Restart", baseline, "sync-s", listed.Seconds())
	return errors.Join(r.measure(ctx, a, o, changed, before), a.End(ctx))
}

// measure measures the agent from its start until it has been idle for a while.
func (r *restartRun) measure(ctx context.Context, a *world.AgentProcess, o *world.Observer, changed *world.Change, before world.Requests) error {
	synced, err := a.AwaitSynced(ctx, r.size)
	if err != nil {
		return err
	}
	reconciling, err := a.CachesSynced()
	if err != nil {
		return err
	}
	changed.WasSent(reconciling)
	took, err := o.Await(ctx, changed)
	if err != nil {
		return err
	}
	after, err := world.SettledRequests(ctx, r.w)
	if err != nil {
		return err
	}
	writes := after.Since(before).Writes(r.importer.Cluster.Name)
	r.Add("Restart", agent, "sync-s", synced.Sub(a.Began).Seconds())
	r.Add("Restart", agent, "first-reconcile-s", reconciling.Sub(a.Began).Seconds())
	r.Add("Restart", agent, "writes", float64(writes-1)) // the change is one
	r.Add("Restart", agent, "change-ms", took)
	if err := a.AwaitLive(ctx, 1, r.size); err != nil {
		return err
	}
	length := scaled(3*world.HeartbeatInterval, r.size, manyServices/2)
	r.log("in sync %.1f s after the start; the CPU of the idle agent is measured for %s", synced.Sub(a.Began).Seconds(), length)
	from, err := world.CPUOf(a.PID())
	if err := errors.Join(err, world.Pause(ctx, length)); err != nil {
		return err
	}
	to, err := world.CPUOf(a.PID())
	r.Add("Restart", agent, "idle-cpu-percent", 100*(to-from)/length.Seconds())
	return err
}

// scaled returns how long something takes that takes full with the full size or more; at least two seconds.
func scaled(full time.Duration, size, fullSize int) time.Duration {
	return max(2*time.Second, full*time.Duration(min(size, fullSize))/time.Duration(fullSize))
}

// changeRecord changes the endpoints of a service, as its exporter's agent would.
func (r *restartRun) changeRecord(ctx context.Context, o *world.Observer) (*world.Change, error) {
	record := &hubv1alpha1.PublishedEndpoints{}
	if err := r.exporter.Remote.Get(ctx, client.ObjectKeyFromObject(r.services[r.size/2].Endpoints), record); err != nil {
		return nil, err
	}
	to := world.Address(r.exporter.Number, r.exporter.NextAddress())
	record.Spec.Groups[0].Addresses[0] = hubv1alpha1.IPAddress(to)
	return o.Expect(to, to), r.exporter.Remote.Update(ctx, record)
}

// listAll returns how long a bare client takes to list and decode what the agent in B needs, all kinds at the same time.
func (r *restartRun) listAll(ctx context.Context) (time.Duration, error) {
	remote, err := hub.Client(r.importer.ToHub) // with a connection of its own, as the agent has
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
	list(r.importer.Local, &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}, &mcsv1beta1.ServiceImportList{}, &mcsv1beta1.ServiceExportList{}, &corev1.NamespaceList{})
	list(remote, &hubv1alpha1.MemberList{}, &hubv1alpha1.HeartbeatList{}, &hubv1alpha1.PublishedServiceList{}, &hubv1alpha1.PublishedEndpointsList{})
	err = group.Wait()
	return time.Since(began), err
}

// logSizes logs the sizes of records as the hub sends them, for the estimate in docs/performance.md.
func (r *restartRun) logSizes(ctx context.Context) error {
	for _, object := range []client.Object{
		r.services[0].Record.DeepCopy(), r.services[0].Endpoints.DeepCopy(),
		&hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: r.exporter.ID.HubNamespace(), Name: hubv1alpha1.HeartbeatName}},
	} {
		if err := r.w.HubClient.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		content, err := json.Marshal(object)
		if err != nil {
			return err
		}
		r.log("%s on the hub: %d bytes", fmt.Sprintf("%T", object)[len("*v1alpha1."):], len(content))
	}
	return nil
}
