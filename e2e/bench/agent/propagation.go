// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
)

// roundTimeout bounds a round.
const roundTimeout = 5 * time.Minute

// sweep are the numbers of writes in flight that the floor is tried with.
var sweep = []int{1, 4, 10, 16, 32}

// propagation measures target 1: how many services a second become complete in two clusters, of many that are exported in
// one of them at once.
func propagation(ctx context.Context, b *bench) (err error) {
	w, err := b.world(ctx, 2, b.size, b.say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := b.calibrate(ctx, w.members[0]); err != nil {
		return err
	}
	p, err := newPropagation(ctx, b, w)
	if err != nil {
		return err
	}
	width, err := p.bestWidth(ctx)
	if err != nil {
		return err
	}
	var agents, floors []float64
	curves := []report.Curve{{Name: "agents"}, {Name: "floor"}} // of the last round
	for round := range b.laps {
		floor, err := p.floor(ctx, p.subjects, width)
		if err != nil {
			return err
		}
		curves[1].Points = b.curve
		rate, err := p.agents(ctx, agentWork{})
		if err != nil {
			return err
		}
		curves[0].Points = b.curve
		agents, floors = append(agents, rate), append(floors, floor)
		b.say("round %d of %d: %.1f services/s, floor %.1f", round+1, b.rounds, rate, floor)
	}
	b.rows = append(b.rows, report.Compare(fmt.Sprintf("propagation of %d services to 2 clusters, services/s", b.size), agents, floors, report.AtLeast(0.8)))
	if err := b.plot("convergence", report.Plot{
		Title: fmt.Sprintf("Convergence of %d services that are exported at once", b.size), X: "s", Y: "% complete", Curves: curves,
	}); err != nil {
		return err
	}
	if !b.missed() && !b.always {
		return nil
	}
	b.say("once more, for a profile of the agents' CPU")
	_, err = p.agents(ctx, agentWork{profile: true})
	return err
}

// propagationRun are the rounds of target 1.
type propagationRun struct {
	*bench
	w        *world
	subjects []*subject
}

func newPropagation(ctx context.Context, b *bench, w *world) (*propagationRun, error) {
	subjects, err := w.members[0].subjects(b.size)
	if err != nil {
		return nil, err
	}
	b.say("%d Services are written, with %d endpoints each", b.size, perSlice)
	return &propagationRun{b, w, subjects}, w.members[0].fill(ctx, subjects)
}

// bestWidth returns the number of writes in flight with which the floor is fastest.
func (p *propagationRun) bestWidth(ctx context.Context) (int, error) {
	few := p.subjects[:min(len(p.subjects), max(20, p.size/5))]
	if _, err := p.floor(ctx, few, sweep[0]); err != nil { // what API servers do once only is no floor's fault
		return 0, err
	}
	best, most := 0, 0.0
	for _, width := range sweep {
		rate, err := p.floor(ctx, few, width)
		if err != nil {
			return 0, err
		}
		p.say("the floor with %d in flight: %.1f services/s", width, rate)
		if rate > most {
			best, most = width, rate
		}
	}
	return best, nil
}

// floor returns how many services a second the bare client makes complete.
func (p *propagationRun) floor(ctx context.Context, subjects []*subject, width int) (float64, error) {
	working, stop, err := startBare(ctx, p.w, subjects, width, p.say)
	if err != nil {
		return 0, err
	}
	rate, err := p.exportAll(working, p.w, subjects)
	return rate, errors.Join(err, stop(), p.w.wipe(ctx))
}

// agentWork says what else is done in a round.
type agentWork struct{ profile bool }

// agents returns how many services a second the agents make complete.
func (p *propagationRun) agents(ctx context.Context, work agentWork) (float64, error) {
	o, end, err := p.agentOptions(ctx)
	if err != nil {
		return 0, err
	}
	running, err := startAgents(ctx, p.w, p.w.members, o)
	if err != nil {
		return 0, errors.Join(err, end())
	}
	before, err := sharesOf(ctx, p.w, running)
	if err != nil {
		return 0, errors.Join(err, running.stop(), end())
	}
	profiled := func() error { return nil }
	if work.profile {
		profiled = p.profile(ctx, running)
	}
	rate, err := p.exportAll(ctx, p.w, p.subjects)
	if err == nil {
		err = p.tellShares(ctx, p.w, running, before)
	}
	return rate, errors.Join(err, profiled(), running.stop(), end(), p.w.wipe(ctx))
}

// exportAll exports all subjects at once and returns how many a second become complete; b.curve says how they did.
func (b *bench) exportAll(ctx context.Context, w *world, subjects []*subject) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a, err := watchArrivals(ctx, w, subjects)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := each(ctx, setupWidth, subjects, func(ctx context.Context, s *subject) error {
		return w.members[0].kube.Create(ctx, s.export.DeepCopy())
	}); err != nil {
		return 0, err
	}
	if err := a.await(ctx, roundTimeout); err != nil {
		return 0, err
	}
	if n := cutOff(a.feeds); n > 0 {
		b.say("the API servers have cut off %d of the harness' watches, which were opened again", n)
	}
	b.curve = a.curve(began)
	return float64(len(subjects)) / a.took(began).Seconds(), nil
}
