// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset/internal/zone"
)

// publisher publishes the changes of the table in the zones. It is their only writer.
type publisher struct {
	table  *table
	zones  []*zone.Zone
	empty  zone.EmptyServices
	gauges gauges

	synced   atomic.Bool
	done     chan struct{} // closed with the first publication
	services map[zone.ServiceKey]*zone.Service
	totals   totals
}

// totals are the numbers of what is served.
type totals struct{ clusterSetIP, headless, endpoints int }

func (t *totals) add(s *zone.Service, by int) {
	switch {
	case s == nil:
	case s.Headless():
		t.headless += by
		t.endpoints += by * s.Endpoints()
	default:
		t.clusterSetIP += by
	}
}

func newPublisher(t *table, zones []*zone.Zone, empty zone.EmptyServices, g gauges) *publisher {
	return &publisher{table: t, zones: zones, empty: empty, gauges: g, done: make(chan struct{}), services: map[zone.ServiceKey]*zone.Service{}}
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
	visible := map[zone.ServiceKey]*zone.Service{}
	for key, c := range changes {
		old, s := p.services[key], zone.NewService(c.imported, c.slices, p.empty)
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
		pause = max(pause, z.Publish(visible, now))
	}
	if p.synced.CompareAndSwap(false, true) {
		close(p.done)
	}
	p.gauges.published(p.totals, time.Since(now))
	return pause
}
