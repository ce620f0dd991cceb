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

// What the scale is about: with the full size, so many members beside the importer, changes a second and seconds.
const (
	scaleSize     = 10_000
	scaleSpeakers = 99
	scaleRate     = 325.0
	scaleTime     = 5 * time.Minute
	trialTime     = 15 * time.Second
	sampled       = 200 // imports that are checked for content
)

// scale measures target 5: one agent with 10,000 services and 250,000 endpoints of 99 other members, which change 325 times
// a second, while 99 watchers take the place of the others' agents.
func scale(ctx context.Context, b *bench) (err error) {
	w, err := b.world(ctx, 1, 1, b.say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := b.calibrate(ctx, w.members[0]); err != nil {
		return err
	}
	r := &scaleRun{bench: b, w: w, importer: w.members[0]}
	b.say("the hub admits %d more members", r.share(scaleSpeakers, fewSpeakers))
	if r.speakers, err = w.admit(ctx, r.share(scaleSpeakers, fewSpeakers), b.size); err != nil {
		return err
	}
	stop, err := pulses(ctx, r.speakers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	running, err := startAgents(ctx, w, w.members, agentOptions{program: b.agent})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, running.stop()) }()
	r.agent = running[0]
	if err := r.fill(ctx); err != nil {
		return err
	}
	if err := r.changes(ctx); err != nil {
		return err
	}
	wrong, err := b.awaitContent(ctx, r.importer, r.sample())
	if err != nil {
		return err
	}
	b.rows = append(b.rows, report.Within(fmt.Sprintf("wrong imports of %d that were compared with what had been written to the hub", len(r.sample())), []float64{float64(wrong)}, report.AtMost(0)))
	return nil
}

// fewSpeakers are enough for services of several exporters.
const fewSpeakers = 6

// scaleRun is the run of target 5.
type scaleRun struct {
	*bench
	w        *world
	importer *member
	speakers []*member
	agent    *agentProcess
	services []*mixed
}

// share returns what a number for the full size is for this one, but at least so many.
func (r *scaleRun) share(full, least int) int {
	return max(least, min(full, full*r.size/scaleSize))
}

// lasting returns how long something lasts that lasts so long with the full size, but at least two seconds.
func (r *scaleRun) lasting(full time.Duration) time.Duration {
	return max(2*time.Second, min(full, full*time.Duration(r.size)/scaleSize))
}

// sample returns imports from all over.
func (r *scaleRun) sample() []*mixed {
	var result []*mixed
	for i := 0; i < len(r.services); i += max(1, len(r.services)/sampled) {
		result = append(result, r.services[i])
	}
	return result
}

// changes has the records change and looks at the agent meanwhile.
func (r *scaleRun) changes(ctx context.Context) (err error) {
	crowd, err := openCrowd(ctx, r.speakers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, crowd.stop()) }()
	rate, err := r.carried(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, err := watchLags(ctx, r.importer)
	if err != nil {
		return err
	}
	length := r.lasting(scaleTime)
	r.say("%.0f changes a second for %s", rate, length)
	before, err := sharesOf(ctx, r.w, agents{r.agent})
	if err != nil {
		return err
	}
	from, observed := crowd.flow(), r.agent.observe(ctx, length)
	made, err := newGenerator(r.services, seen).run(ctx, rate, length)
	if err != nil {
		cancel() // the observation is not waited for
		return err
	}
	events, megabytes := crowd.flow().since(from)
	after, err := sharesOf(ctx, r.w, agents{r.agent})
	if err != nil {
		return err
	}
	all, err := seen.all(ctx)
	if err != nil {
		return err
	}
	looked, err := observed()
	if err != nil {
		return err
	}
	r.say("%.0f watch events and %.1f MB a second went to %d watchers beside the agent; %d of their watches were cut off and opened again, and %d of the harness'", events, megabytes, len(r.speakers), crowd.cutOff.Load(), seen.feed.cutOff())
	r.say("CPU: %s", after.since(before))
	r.tellRate(made, events)
	r.tellLags(all)
	r.tellReadings(looked)
	r.tellShares(after.since(before))
	return r.plotLags(all)
}

// carried returns the rate of changes that this machine carries, with the agent and all watchers: the one that is wanted,
// or less. An agent that falls behind does not lower it, unless it takes the CPU that the others would need.
func (r *scaleRun) carried(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, err := watchLags(ctx, r.importer)
	if err != nil {
		return 0, err
	}
	g := newGenerator(r.services, seen)
	return r.carries(ctx, r.w, agents{r.agent}, r.wantedRate(), trial{
		run: func(ctx context.Context, rate float64) (float64, error) {
			return g.run(ctx, rate, r.lasting(trialTime))
		},
		settle: func(ctx context.Context) error {
			_, err := seen.all(ctx)
			return err
		},
	})
}

// wantedRate is in changes a second.
func (r *scaleRun) wantedRate() float64 {
	return max(10, min(scaleRate, scaleRate*float64(r.size)/scaleSize))
}

func (r *scaleRun) tellRate(made, events float64) {
	r.rows = append(r.rows,
		report.Compare(fmt.Sprintf("changes a second with %d members, %d services and %d endpoints; reference: wanted", len(r.speakers)+1, len(r.services), endpointsOf(r.services)),
			[]float64{made}, []float64{r.wantedRate()}, report.AtLeast(slightly)),
		report.Figure(fmt.Sprintf("watch events a second to %d other watchers", len(r.speakers)), []float64{events}),
	)
}

// tellLags is told the changes in their order.
func (r *scaleRun) tellLags(all []arrival) {
	values := make([]float64, len(all))
	for i, a := range all {
		values[i] = a.lag
	}
	slices.Sort(values)
	r.rows = append(r.rows,
		report.Figure("lag from the hub to the slice, p50, ms", []float64{report.Quantile(values, 0.5)}),
		report.Within("the same, p99, ms", []float64{report.Quantile(values, 0.99)}, report.AtMost(1000)),
		report.Figure("the same, max, ms", []float64{report.Quantile(values, 1)}),
	)
}

// plotLags shows whether the agent keeps up over the time.
func (r *scaleRun) plotLags(all []arrival) error {
	c := report.Curve{Name: "changes"}
	for _, a := range all {
		c.Points = append(c.Points, report.Point{X: a.taken.Sub(all[0].taken).Seconds(), Y: a.lag})
	}
	return r.plot("lag", report.Plot{Title: "Lag from the hub to the slice while records change", X: "s", Y: "ms", Curves: []report.Curve{c}})
}

func (r *scaleRun) tellReadings(looked []reading) {
	was, is := ends(looked, func(r reading) float64 { return r.waiting })
	r.rows = append(r.rows, report.Within("keys by which the agent's queues have grown", []float64{is - was}, report.AtMost(mostGrowth)))
	was, is = ends(looked, func(r reading) float64 { return r.resident })
	r.rows = append(r.rows, report.Compare("memory at the end, MB; reference: at the beginning of the changes", []float64{is}, []float64{was}, report.AtMost(mostFlat)))
}

// mostGrowth is how many keys more may wait at the end; mostFlat is what memory may differ by that is called flat.
const mostGrowth, mostFlat = 10, 1.1

func (r *scaleRun) tellShares(used shares) {
	least := 100.0
	for _, s := range []sort{sortAPIServer, sortEtcd, sortHarness} {
		r.rows = append(r.rows, report.Figure(fmt.Sprintf("CPU of the %s, %% of all that was used", plural[s]), []float64{used.percent(s)}))
		least = min(least, used.percent(s))
	}
	r.rows = append(r.rows, report.Compare("CPU of the agent, % of all that was used; reference: the smallest of the others", []float64{used.percent(sortAgent)}, []float64{least}, report.AtMost(1)))
}
