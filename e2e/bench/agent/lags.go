// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// lags note how long changes take from the hub to the importer. A change that a later one of the same slice has overtaken
// has arrived with that one, so that an agent gains nothing by falling behind.
type lags struct {
	mu      sync.Mutex
	awaited map[string]*onItsWay // by the address that it brings
	queues  map[*published][]*onItsWay
	open    int // changes that have not been both taken and seen
	done    []arrival
	feed    *feed
}

// onItsWay is a change of a slice.
type onItsWay struct {
	of          *published
	address     string
	taken, seen time.Time // zero until then
}

// arrival is a change that has arrived.
type arrival struct {
	taken time.Time
	lag   float64 // milliseconds
}

// watchLags returns when its watch of the importer is open.
func watchLags(ctx context.Context, importer *member) (*lags, error) {
	l := &lags{awaited: map[string]*onItsWay{}, queues: map[*published][]*onItsWay{}}
	var err error
	l.feed, err = openFeed(ctx, importer.kube, &discoveryv1.EndpointSliceList{}, namespace, func(o client.Object) {
		slice, now := o.(*discoveryv1.EndpointSlice), time.Now()
		if slice.Labels[discoveryv1.LabelManagedBy] == clusterset.ManagedBy {
			l.see(slice, now)
		}
	})
	return l, err
}

// expect has a change of a slice noted when it arrives.
func (l *lags) expect(p *published, address string) *onItsWay {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &onItsWay{of: p, address: address}
	l.awaited[address] = c
	l.queues[p] = append(l.queues[p], c)
	l.open++
	return c
}

// took notes when the hub's API server had taken a change.
func (l *lags) took(c *onItsWay, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.taken = at
	l.close(c)
}

func (l *lags) see(slice *discoveryv1.EndpointSlice, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range slice.Endpoints {
		if c := l.awaited[e.Addresses[0]]; c != nil {
			l.arrived(c, at)
		}
	}
}

// arrived notes that a change has been seen, and with it those of the same slice before it.
func (l *lags) arrived(c *onItsWay, at time.Time) {
	queue := l.queues[c.of]
	i := slices.Index(queue, c)
	for _, one := range queue[:i+1] {
		delete(l.awaited, one.address)
		one.seen = at
		l.close(one)
	}
	l.queues[c.of] = queue[i+1:]
}

// close takes a change to those that are done once it is known when it was taken and seen.
func (l *lags) close(c *onItsWay) {
	if c.taken.IsZero() || c.seen.IsZero() {
		return
	}
	l.open--
	l.done = append(l.done, arrival{c.taken, max(0, milliseconds(c.seen.Sub(c.taken)))})
}

// all returns the changes that have been made, once all have arrived, sorted by the time when they were taken. It is an
// error if that does not come.
func (l *lags) all(ctx context.Context) ([]arrival, error) {
	open := 0
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, sightTimeout, true, func(context.Context) (bool, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		open = l.open
		return open == 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("%d changes have not arrived within %s: %w", open, sightTimeout, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(slices.Values(l.done), func(a, b arrival) int { return a.taken.Compare(b.taken) }), nil
}
