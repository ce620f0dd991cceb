// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/bench/agent/world"
	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// How many changes a round makes, and the numbers of services: few, and many to measure the work per change.
const fanoutChanges, fewServices, manyServices = 100, 20, 1000

// mostGrowth is by how much the work per change may differ for reasons other than the number of services.
const mostGrowth = 1.25

// fanout measures how many requests a change of endpoints causes with more and more members, whether the work for it depends
// on the number of services, and the writes for a burst of changes and for changes that no member imports.
func fanout(ctx context.Context, b *bench, w *world.World) (err error) {
	r := &fanoutRun{bench: b, changes: min(fanoutChanges, 10*b.size)}
	if r.services, err = world.CreateServices(ctx, r.log, w.Members[0], min(manyServices, 25*b.size)); err != nil {
		return err
	}
	for n := 2; n <= b.size; n *= 2 {
		some := *w
		some.Members = w.Members[:n]
		if err := r.withMembers(ctx, &some); err != nil {
			return fmt.Errorf("%d members: %w", n, err)
		}
	}
	return nil
}

type fanoutRun struct {
	*bench
	changes  int
	services []*world.TestService
}

// withMembers measures with the agents of all members of w; with two, also what does not depend on their number.
func (r *fanoutRun) withMembers(ctx context.Context, w *world.World) (err error) {
	stop, err := w.StartAgents(ctx, r.program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop(), w.CleanUp(ctx)) }()
	if _, err := world.ExportAll(ctx, w, r.services[:fewServices]); err != nil {
		return err
	}
	name := fmt.Sprintf("Fanout/members=%d", len(w.Members))
	for round := range r.rounds {
		caused, err := r.causedBy(ctx, w, func(slices *world.SourceSlices, o *world.Observer) error { return r.changeAll(ctx, slices, o) })
		if err != nil {
			return err
		}
		caused[world.Request{Cluster: w.Members[0].Cluster.Name, Verb: "PUT", Resource: "endpointslices"}] -= r.changes // the harness' own
		r.log("%d members, round %d of %d: %d changes caused: %s", len(w.Members), round+1, r.rounds, r.changes, caused)
		most := 0
		for _, m := range w.Members {
			most = max(most, caused.In(m.Cluster.Name))
		}
		r.Add(name, agent, "hub-requests/change", float64(caused.In(w.Hub.Name))/float64(r.changes))
		r.Add(name, agent, "most-member-requests/change", float64(most)/float64(r.changes))
		r.Add(name, agent, "reads/change", float64(caused.Reads())/float64(r.changes))
	}
	r.Limit(name, "hub-requests/change", agent, results.AtMost(1))
	r.Limit(name, "most-member-requests/change", agent, results.AtMost(1))
	r.Limit(name, "reads/change", agent, results.AtMost(0))
	if len(w.Members) > 2 {
		return nil
	}
	return errors.Join(r.burst(ctx, w), r.notImported(ctx, w), r.growth(ctx, w))
}

// causedBy returns the requests that follow from what do does, with the slices of a few services and an observer of the
// second member.
func (r *fanoutRun) causedBy(ctx context.Context, w *world.World, do func(*world.SourceSlices, *world.Observer) error) (world.Requests, error) {
	slices, err := world.ReadSlices(ctx, w.Members[0], r.services[:fewServices])
	if err != nil {
		return nil, err
	}
	o, stop, err := world.Observe(ctx, w.Members[1])
	defer stop()
	if err != nil {
		return nil, err
	}
	before, err := world.SettledRequests(ctx, w)
	if err != nil {
		return nil, err
	}
	if err := do(slices, o); err != nil {
		return nil, err
	}
	after, err := world.SettledRequests(ctx, w)
	return after.Since(before), err
}

// changeAll makes changes, each when the one before has arrived in the second member.
func (r *fanoutRun) changeAll(ctx context.Context, slices *world.SourceSlices, o *world.Observer) error {
	for i := range r.changes {
		if _, err := slices.ChangeSeen(ctx, i, o); err != nil {
			return err
		}
	}
	return nil
}

// burst changes one slice as fast as possible, and counts the writes on the hub.
func (r *fanoutRun) burst(ctx context.Context, w *world.World) error {
	name := fmt.Sprintf("Burst/changes=%d", r.changes)
	for range r.rounds {
		caused, err := r.causedBy(ctx, w, func(slices *world.SourceSlices, o *world.Observer) error {
			for range r.changes - 1 {
				if err := slices.Change(ctx, 0); err != nil {
					return err
				}
			}
			_, err := slices.ChangeSeen(ctx, 0, o)
			return err
		})
		if err != nil {
			return err
		}
		r.Add(name, agent, "hub-writes", float64(caused.In(w.Hub.Name)))
	}
	r.Limit(name, "hub-writes", agent, results.AtMost(0.9*float64(r.changes)))
	return nil
}

// notImported changes fields that no member imports, waits for heartbeats of all, and counts the writes.
func (r *fanoutRun) notImported(ctx context.Context, w *world.World) error {
	caused, err := r.causedBy(ctx, w, func(*world.SourceSlices, *world.Observer) error {
		for _, s := range r.services[:fewServices] {
			service := &corev1.Service{}
			if err := w.Members[0].Admin.Get(ctx, client.ObjectKeyFromObject(s.Service), service); err != nil {
				return err
			}
			service.Annotations = map[string]string{"example.com/private": time.Now().String()}
			if err := w.Members[0].Admin.Update(ctx, service); err != nil {
				return err
			}
		}
		return nextHeartbeats(ctx, w)
	})
	if err != nil {
		return err
	}
	r.log("changes that no member imports, and heartbeats, caused: %s", caused)
	r.Add("NotImported", agent, "writes", float64(caused.Total()-caused.Reads()-fewServices))
	r.Limit("NotImported", "writes", agent, results.AtMost(0))
	return nil
}

// growth measures whether the agent's work for a change depends on the number of services: the CPU time of the agent in the
// second member, with few and with many.
func (r *fanoutRun) growth(ctx context.Context, w *world.World) error {
	few, err := r.work(ctx, w, fewServices)
	if err != nil {
		return err
	}
	r.log("export %d more services", len(r.services)-fewServices)
	if _, err := world.ExportAll(ctx, w, r.services[fewServices:]); err != nil {
		return err
	}
	many, err := r.work(ctx, w, len(r.services))
	r.Add("Work", agent, "growth", many/few)
	r.Limit("Work", "growth", agent, results.AtMost(mostGrowth))
	return err
}

// work returns the median CPU time for a change, in milliseconds.
func (r *fanoutRun) work(ctx context.Context, w *world.World, services int) (float64, error) {
	name := fmt.Sprintf("Work/services=%d", services)
	for range r.rounds {
		used, _, err := r.workOnce(ctx, w)
		if err != nil {
			return 0, err
		}
		r.Add(name, agent, "cpu-ms/change", used)
	}
	return r.Median(name, agent, "cpu-ms/change"), nil
}

// workOnce makes changes, and returns the CPU time of the agent in the second member for one of them, in milliseconds, and the requests for
// all of them.
func (r *fanoutRun) workOnce(ctx context.Context, w *world.World) (used float64, caused world.Requests, err error) {
	caused, err = r.causedBy(ctx, w, func(slices *world.SourceSlices, o *world.Observer) error {
		before, err := world.CPUOf(w.Members[1].Agent.PID())
		if err := errors.Join(err, r.changeAll(ctx, slices, o)); err != nil {
			return err
		}
		after, err := world.CPUOf(w.Members[1].Agent.PID())
		used = 1000 * (after - before) / float64(r.changes)
		return err
	})
	return used, caused, err
}

// nextHeartbeats returns when each member has sent one more heartbeat.
func nextHeartbeats(ctx context.Context, w *world.World) error {
	first := map[string]string{}
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, world.StartTimeout, true, func(ctx context.Context) (bool, error) {
		all := true
		for _, m := range w.Members {
			heartbeat := &hubv1alpha1.Heartbeat{}
			if err := w.HubClient.Get(ctx, client.ObjectKey{Namespace: m.ID.HubNamespace(), Name: hubv1alpha1.HeartbeatName}, heartbeat); err != nil {
				return false, err
			}
			if first[string(m.ID)] == "" {
				first[string(m.ID)] = heartbeat.ResourceVersion
			}
			all = all && first[string(m.ID)] != heartbeat.ResourceVersion
		}
		return all, nil
	})
}
