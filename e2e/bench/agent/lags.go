// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/bench/agent/world"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// lags measures the time from a change of endpoints until stores have it. Each service has one slice that changes.
type lags struct {
	slices []*recordedSlice
	names  []string // of the services

	mu sync.Mutex
	// pending are the changes that a store does not have yet, and when the first was sent.
	pending map[pendingChange]time.Time
	stores  int
	done    []float64 // milliseconds
}

// pendingChange is a change of the slice of a service, as one store receives it.
type pendingChange struct {
	store   int
	service string
}

// newLags returns lags of changes of services in the stores of connections.
func newLags(services []*scaleService, connections []*connection) *lags {
	l := &lags{pending: map[pendingChange]time.Time{}, stores: len(connections)}
	for _, s := range services {
		l.slices, l.names = append(l.slices, s.exports[0].slices[0]), append(l.names, s.name)
	}
	for i, c := range connections {
		c.store.Subscribe(func(event hub.Event) {
			if event.Endpoints {
				l.received(i, event.Key)
			}
		})
	}
	return l
}

// change changes the slice of the i-th service, modulo their number.
func (l *lags) change(ctx context.Context, i int) error {
	i %= len(l.slices)
	r := l.slices[i]
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setNext()
	l.sent(l.names[i])
	return r.from.Remote.Update(ctx, r.record)
}

// sent makes a change pending in all stores. If an earlier one is pending, its time counts.
func (l *lags) sent(service string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for store := range l.stores {
		change := pendingChange{store, service}
		if _, earlier := l.pending[change]; !earlier {
			l.pending[change] = time.Now()
		}
	}
}

func (l *lags) received(store int, key clusterset.ServiceKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change := pendingChange{store, key.Name}
	if began, ok := l.pending[change]; ok {
		l.done = append(l.done, time.Since(began).Seconds()*1000)
		delete(l.pending, change)
	}
}

// awaitAll returns the lags in milliseconds when no change is pending.
func (l *lags) awaitAll(ctx context.Context) ([]float64, error) {
	err := lab.Await(ctx, world.MetricsInterval, world.ArrivalTimeout, func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.pending) > 0 {
			return fmt.Errorf("%d changes have not arrived", len(l.pending))
		}
		return nil
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done, err
}
