// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"reflect"
	"sync/atomic"
	"time"
)

// publisher publishes the changes of the table in the zones. It is their only writer.
type publisher struct {
	table  *table
	zones  []*zone
	empty  emptyServices
	gauges gauges

	synced   atomic.Bool
	done     chan struct{} // closed with the first publication
	services map[serviceKey]*service
	totals   totals
}

// totals are the numbers of what is served.
type totals struct{ clusterSetIP, headless, endpoints int }

func (t *totals) add(s *service, by int) {
	switch {
	case s == nil:
	case s.headless():
		t.headless += by
		t.endpoints += by * s.endpoints()
	default:
		t.clusterSetIP += by
	}
}

func newPublisher(t *table, zones []*zone, empty emptyServices, g gauges) *publisher {
	return &publisher{table: t, zones: zones, empty: empty, gauges: g, done: make(chan struct{}), services: map[serviceKey]*service{}}
}

// run publishes until ctx ends.
func (p *publisher) run(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.table.notify:
		}
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		pause.Reset(p.publish(time.Now()))
	}
}

// publish builds the services that changed, and puts them into the zones. It returns how long the next publication must wait.
func (p *publisher) publish(now time.Time) time.Duration {
	changes, known := p.table.take()
	p.gauges.refused(p.table.refusals())
	if !known {
		return 0
	}
	visible := map[serviceKey]*service{}
	for key, c := range changes {
		old, s := p.services[key], newService(c.imported, c.slices, p.empty)
		if reflect.DeepEqual(old, s) { // not equality.Semantic: the fields are unexported
			continue
		}
		visible[key] = s
		p.totals.add(old, -1)
		p.totals.add(s, +1)
		p.services[key] = s
		if s == nil {
			delete(p.services, key)
		}
	}
	var pause time.Duration
	for _, z := range p.zones {
		pause = max(pause, z.publish(visible, now))
	}
	if p.synced.CompareAndSwap(false, true) {
		close(p.done)
	}
	p.gauges.published(p.totals, time.Since(now))
	return pause
}

// publish puts the services that changed into the zone, and then increases the serial number, so that a client that reads the
// number finds the change. It returns how long the next change must wait.
func (z *zone) publish(changes map[serviceKey]*service, now time.Time) time.Duration {
	if len(changes) == 0 && z.serial.load() != 0 {
		return 0
	}
	nodes := make(map[serviceKey]*node, len(changes))
	for key, s := range changes {
		nodes[key] = nil
		if s != nil {
			nodes[key] = newNode(s, z.name, z.ttl)
		}
	}
	z.services.publish(nodes)
	return z.serial.advance(now)
}
