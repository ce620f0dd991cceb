// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// generatorWidth is how many changes may be on their way to the hub at a time; more, and the hub is behind.
const generatorWidth = 64

// generatorTick is how often it is looked at how many changes are due, and mostOfTicks what one look makes up for: what a
// busy machine has missed beyond that is not made up for, since a burst would be no steady rate.
const generatorTick, mostOfTicks = 10 * time.Millisecond, 100 * time.Millisecond

// generator changes the records of slices on the hub, as their exporters' agents would.
type generator struct {
	slices []*published
	next   int
	seen   *lags
	made   atomic.Int64
}

// newGenerator changes all slices of services that an import uses, in an order that has nothing to do with theirs.
func newGenerator(services []*mixed, seen *lags) *generator {
	g := &generator{seen: seen}
	for _, s := range services {
		for _, c := range s.contributions {
			for _, p := range c.slices {
				if len(p.listens) > 0 {
					g.slices = append(g.slices, p)
				}
			}
		}
	}
	return g
}

// stride takes a generator from slice to slice: a prime, so that all have their turn unless there are as
// many.
const stride = 7919

// run changes slices at a rate for a time and returns how many a second it were.
func (g *generator) run(ctx context.Context, rate float64, length time.Duration) (float64, error) {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(generatorWidth)
	tick := time.NewTicker(generatorTick)
	defer tick.Stop()
	began, before := time.Now(), g.made.Load()
	due, last := 0.0, began
	for last.Sub(began) < length && groupCtx.Err() == nil {
		select {
		case <-groupCtx.Done():
		case <-tick.C:
		}
		now := time.Now()
		for due += rate * min(now.Sub(last), mostOfTicks).Seconds(); due >= 1; due-- {
			g.next = (g.next + stride) % len(g.slices)
			p := g.slices[g.next]
			group.Go(func() error { return g.change(groupCtx, p) })
		}
		last = now
	}
	if err := group.Wait(); err != nil {
		return 0, fmt.Errorf("changes of records: %w", err)
	}
	return float64(g.made.Load()-before) / time.Since(began).Seconds(), ctx.Err()
}

// change gives an endpoint of a slice an address that none has had for long.
func (g *generator) change(ctx context.Context, p *published) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := addressIn(corev1.IPFamily(p.record.Spec.AddressType), p.from.number, firstChange+int(p.from.changes.Add(1))%firstChange)
	p.record.Spec.TriggerTime = new(metav1.NowMicro())
	p.record.Spec.Groups[0].Addresses[0] = hubv1alpha1.IPAddress(to)
	c := g.seen.expect(p, to)
	if err := p.from.remote.Update(ctx, p.record); err != nil {
		return err
	}
	g.seen.took(c, time.Now())
	g.made.Add(1)
	return nil
}
