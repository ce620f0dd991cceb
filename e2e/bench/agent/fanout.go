// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
)

// What is changed in a round of the fan-out, and how many services there are: few, and for the work per change many.
const (
	fanoutChanges = 100
	fewServices   = 20
	manyServices  = 1000
	// leastGrowth is what the work per change may differ by, for reasons that have nothing to do with the number of services.
	leastGrowth = 1.25
)

// fanout measures targets 6 and 7: what a change of endpoints asks of the API servers with ever more members, whether the
// work for it depends on the number of services, how a burst is taken, and what changes cost that nobody imports.
func fanout(ctx context.Context, b *bench) (err error) {
	many := min(manyServices, 50*b.size)
	r := &fanoutRun{bench: b, changes: min(fanoutChanges, 10*b.size)}
	if r.all, err = b.world(ctx, b.size, many, b.say); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.all.close()) }()
	if r.subjects, err = r.all.members[0].subjects(many); err != nil {
		return err
	}
	b.say("%d Services are written, with %d endpoints each", many, perSlice)
	if err := r.all.members[0].fill(ctx, r.subjects); err != nil {
		return err
	}
	for n := 2; n <= b.size; n *= 2 {
		if err := r.withMembers(ctx, n); err != nil {
			return fmt.Errorf("%d members: %w", n, err)
		}
	}
	return nil
}

// fanoutRun are the rounds of targets 6 and 7.
type fanoutRun struct {
	*bench
	all      *world
	changes  int
	subjects []*subject
}

// withMembers measures with the agents of so many members; with two, also what does not depend on their number.
func (r *fanoutRun) withMembers(ctx context.Context, n int) (err error) {
	w := *r.all
	w.members = w.members[:n]
	o, end, err := r.agentOptions(ctx)
	if err != nil {
		return err
	}
	running, err := startAgents(ctx, &w, w.members, o)
	if err != nil {
		return errors.Join(err, end())
	}
	defer func() { err = errors.Join(err, running.stop(), end(), w.wipe(ctx)) }()
	if _, err := r.exportAll(ctx, &w, r.subjects[:fewServices]); err != nil {
		return err
	}
	var hub, importer, reads []float64
	for round := range r.laps {
		spent, err := r.afterChanges(ctx, &w)
		if err != nil {
			return err
		}
		r.say("%d members, round %d of %d: %d changes led to: %s", n, round+1, r.rounds, r.changes, spent)
		per := func(k int) float64 { return float64(k) / float64(r.changes) }
		hub = append(hub, per(spent.since(nil, w.hub.Name).total(anything)))
		most := 0
		for _, m := range w.members {
			most = max(most, spent.since(nil, m.cluster.Name).total(anything))
		}
		importer = append(importer, per(most))
		reads = append(reads, per(spent.total(request.isRead)))
	}
	one := []float64{1}
	r.rows = append(r.rows,
		report.Compare(fmt.Sprintf("requests on the hub per change, %d members", n), hub, one, report.AtMost(1)),
		report.Compare(fmt.Sprintf("requests in the importing cluster with most, per change, %d members", n), importer, one, report.AtMost(1)),
		report.Within(fmt.Sprintf("reads anywhere per change, %d members", n), reads, report.AtMost(0)),
	)
	if n > 2 {
		return nil
	}
	return errors.Join(r.burst(ctx, &w), r.ignored(ctx, &w), r.growth(ctx, &w, running))
}

func anything(request) bool { return true }

// afterChanges returns what changes of endpoints, one after the other, have led to, less the changes themselves.
func (r *fanoutRun) afterChanges(ctx context.Context, w *world) (requests, error) {
	before, c, seen, stop, err := r.prepare(ctx, w)
	if err != nil {
		return nil, err
	}
	defer stop()
	for i := range r.changes {
		if err := changeSeen(ctx, c, i%fewServices, seen); err != nil {
			return nil, err
		}
	}
	after, err := settled(ctx, w)
	if err != nil {
		return nil, err
	}
	return withoutChanges(after.since(before, ""), w, r.changes), nil
}

// prepare opens what a round needs, and returns the requests until then.
func (r *fanoutRun) prepare(ctx context.Context, w *world) (requests, *changer, *sightings, func(), error) {
	ctx, stop := context.WithCancel(ctx)
	c, err := newChanger(ctx, w.members[0], r.subjects[:fewServices])
	if err != nil {
		stop()
		return nil, nil, nil, nil, err
	}
	seen, err := watchSightings(ctx, w.members[1])
	if err != nil {
		stop()
		return nil, nil, nil, nil, err
	}
	before, err := settled(ctx, w)
	return before, c, seen, stop, err
}

// changeSeen makes a change and waits until it is in the second member.
func changeSeen(ctx context.Context, c *changer, i int, seen *sightings) error {
	var sighted <-chan time.Time
	taken, err := c.change(ctx, i, func(address string) { sighted = seen.expect(address) })
	if err != nil {
		return err
	}
	_, err = lag(ctx, taken, sighted)
	return err
}

// withoutChanges takes the harness' own changes of slices away.
func withoutChanges(spent requests, w *world, changes int) requests {
	result, own := maps.Clone(spent), request{w.members[0].cluster.Name, "PUT", "endpointslices"}
	if result[own] -= changes; result[own] <= 0 {
		delete(result, own)
	}
	return result
}

// burst changes one slice as fast as can be, and counts what the hub gets of it.
func (r *fanoutRun) burst(ctx context.Context, w *world) error {
	var writes []float64
	for range r.rounds {
		before, c, seen, stop, err := r.prepare(ctx, w)
		if err != nil {
			return err
		}
		for range r.changes - 1 {
			if _, err := c.change(ctx, 0, func(string) {}); err != nil {
				stop()
				return err
			}
		}
		err = changeSeen(ctx, c, 0, seen)
		stop()
		if err != nil {
			return err
		}
		after, err := settled(ctx, w)
		if err != nil {
			return err
		}
		writes = append(writes, float64(after.since(before, w.hub.Name).total(anything)))
	}
	r.rows = append(r.rows, report.Compare(fmt.Sprintf("writes on the hub for a burst of %d changes of one slice", r.changes), writes, []float64{float64(r.changes)}, report.AtMost(0.9)))
	return nil
}

// ignored changes what nobody imports, waits for heartbeats of all, and counts what that leads to.
func (r *fanoutRun) ignored(ctx context.Context, w *world) error {
	a := w.members[0]
	before, err := settled(ctx, w)
	if err != nil {
		return err
	}
	for _, s := range r.subjects[:fewServices] {
		service := &corev1.Service{}
		if err := a.kube.Get(ctx, client.ObjectKeyFromObject(s.service), service); err != nil {
			return err
		}
		service.Annotations = map[string]string{"example.com/private": time.Now().String()}
		if err := a.kube.Update(ctx, service); err != nil {
			return err
		}
	}
	if err := nextHeartbeats(ctx, w); err != nil {
		return err
	}
	after, err := settled(ctx, w)
	if err != nil {
		return err
	}
	spent := after.since(before, "")
	writes := spent.total(func(q request) bool { return !q.isRead() }) - fewServices
	r.say("changes that nobody imports, and heartbeats, led to: %s", spent)
	r.rows = append(r.rows, report.Within(fmt.Sprintf("writes for %d updates of fields that nothing imports, and heartbeats of all", fewServices), []float64{float64(writes)}, report.AtMost(0)))
	return nil
}
