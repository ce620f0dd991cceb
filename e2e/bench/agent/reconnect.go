// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
)

// How many services the hub holds for each member that reconnects; how long it is away, which is long enough for all to
// have come to their longest waits; and how close together lists are that come at once, of which there may be so many.
const (
	servicesEach = 5
	awayFor      = 15 * time.Second
	atOnce       = 250 * time.Millisecond
	mostAtOnce   = 25 // percent
)

// reconnect measures a part of target 8: how the agents of many members spread their lists when the hub is back after a
// restart. Each is a connection of the product's to the hub and what it fills, in this process.
func reconnect(ctx context.Context, b *bench) (err error) {
	w, err := b.world(ctx, 0, 0, b.say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	b.say("the hub admits %d members", b.size)
	speakers, err := w.admit(ctx, b.size, servicesEach*b.size)
	if err != nil {
		return err
	}
	x, services := &mixer{speakers: speakers, addresses: map[*member]int{}}, []*mixed{}
	for i := range servicesEach * b.size {
		services = append(services, x.newMixed(i))
	}
	b.say("records of %d services with %d endpoints are written to the hub", len(services), endpointsOf(services))
	if err := publishMixed(ctx, services); err != nil {
		return err
	}
	r := &reconnectRun{bench: b, w: w}
	for range b.rounds {
		if err := r.round(ctx, speakers); err != nil {
			return err
		}
	}
	r.tell()
	return nil
}

// reconnectRun are the restarts of the hub.
type reconnectRun struct {
	*bench
	w                               *world
	first50, first99, all99, burst  []float64
	inFlight, waiting, refused      []float64
	watchLists, plainLists, resumed []float64
}

// round restarts the hub once, under connections that are opened and closed for it.
func (r *reconnectRun) round(ctx context.Context, speakers []*member) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	links := make([]*link, len(speakers))
	for i, m := range speakers {
		if links[i], err = openLink(ctx, m); err != nil {
			return err
		}
	}
	defer func() {
		cancel()
		for _, l := range links {
			<-l.ended
		}
	}()
	if err := awaitLinks(ctx, links, hub.Reachable); err != nil {
		return err
	}
	r.say("%d connections to the hub are open; its API server stops, and starts %s later", len(links), r.away())
	if err := r.w.hub.APIServer.Stop(ctx); err != nil {
		return err
	}
	if err := pause(ctx, r.away()); err != nil {
		return err
	}
	if err := awaitLinks(ctx, links, hub.Unreachable); err != nil {
		return err
	}
	for _, l := range links {
		l.forget()
	}
	load, ready, err := r.comeBack(ctx, links)
	if err != nil {
		return err
	}
	r.count(links, ready)
	r.inFlight, r.waiting, r.refused = append(r.inFlight, load.inFlight), append(r.waiting, load.waiting), append(r.refused, load.refused)
	return nil
}

// away is shorter in a quick look.
func (r *reconnectRun) away() time.Duration { return min(awayFor, awayFor*time.Duration(r.size)/50) }

// comeBack starts the hub and returns what it had to do until all were connected again, and when it was ready.
func (r *reconnectRun) comeBack(ctx context.Context, links []*link) (load, time.Time, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var seen load
	var group errgroup.Group
	group.Go(func() error { return seen.watch(watching, r.w.hub) })
	if err := r.w.hub.APIServer.Start(ctx); err != nil {
		return load{}, time.Time{}, err
	}
	ready := time.Now()
	err := awaitLinks(ctx, links, hub.Reachable)
	stop()
	return seen, ready, errors.Join(err, group.Wait())
}

// count takes over what the connections have asked for since the hub was ready; it may answer some before it says so.
func (r *reconnectRun) count(links []*link, ready time.Time) {
	var lists, firsts, back []float64
	for _, l := range links {
		for _, asked := range l.answered() {
			if asked.began.Before(ready) {
				ready = asked.began
			}
		}
	}
	kinds := map[manner]int{}
	for _, l := range links {
		var own []float64
		for _, asked := range l.answered() {
			kinds[asked.manner]++
			if asked.manner != resuming {
				own = append(own, asked.began.Sub(ready).Seconds())
			}
		}
		if len(own) > 0 {
			firsts = append(firsts, slices.Min(own))
		}
		lists = append(lists, own...)
		back = append(back, l.lastChange().Sub(ready).Seconds())
	}
	slices.Sort(lists)
	slices.Sort(firsts)
	slices.Sort(back)
	r.first50, r.first99 = append(r.first50, report.Quantile(firsts, 0.5)), append(r.first99, report.Quantile(firsts, 0.99))
	r.all99, r.burst = append(r.all99, report.Quantile(back, 0.99)), append(r.burst, 100*densest(lists, atOnce.Seconds()))
	r.watchLists, r.plainLists = append(r.watchLists, float64(kinds[watchListing])), append(r.plainLists, float64(kinds[listing]))
	r.resumed = append(r.resumed, float64(kinds[resuming]))
	r.say("after %s, all %d connections are back; their lists began %.1f to %.1f s after the hub was ready", r.away(), len(links), report.Quantile(lists, 0), report.Quantile(lists, 1))
}

// densest returns the share of sorted values of which the most lie within a width.
func densest(sorted []float64, width float64) float64 {
	most, first := 0, 0
	for i, value := range sorted {
		for value-sorted[first] > width {
			first++
		}
		most = max(most, i-first+1)
	}
	return float64(most) / float64(max(1, len(sorted)))
}

func (r *reconnectRun) tell() {
	r.rows = append(r.rows,
		report.Within(fmt.Sprintf("lists of %d connections to a restarted hub that begin within %s, %% of all", r.size, atOnce), r.burst, report.AtMost(mostAtOnce)),
		report.Figure("a connection's first list after the hub is ready, p50, s", r.first50),
		report.Figure("the same, p99, s", r.first99),
		report.Figure("a connection reads everything again, p99, s", r.all99),
		report.Figure("lists that are streamed (WatchList)", r.watchLists),
		report.Figure("lists that are not", r.plainLists),
		report.Figure("watches that go on where they were", r.resumed),
		report.Figure("reads in flight on the hub, most", r.inFlight),
		report.Figure("requests that wait for their turn on the hub, most", r.waiting),
		report.Within("requests that the hub turns away", r.refused, report.AtMost(0)),
	)
}
