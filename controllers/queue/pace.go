// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// What one member can do to one service in every other cluster: one write on the hub becomes one in each of them
// (design decision 4). Each look takes a token, those at the echo of what was written too. The first are never delayed.
const (
	changesPerSecond = 20
	changesAtOnce    = 50
)

// fewBuckets is how many buckets are not worth clearing out.
const fewBuckets = 1024

// Pacer has a service looked at less often where a member changes it too often: it keeps a token bucket for each member
// and service.
type Pacer struct {
	own   clusterset.ClusterID
	clock clock.WithDelayedExecution

	mu      sync.Mutex
	buckets map[contribution]*bucket
	// enough is how many buckets there may be before the full ones, which are as good as none, are cleared out.
	enough int
}

// contribution is what one member contributes to one service; without a member, what this cluster has made of it.
type contribution struct {
	cluster clusterset.ClusterID
	service clusterset.ServiceKey
}

type bucket struct {
	tokens *rate.Limiter
	// due is when the service is next looked at because of the member.
	due time.Time
}

// NewPacer returns a Pacer of a cluster, with full buckets.
func NewPacer(own clusterset.ClusterID, c clock.WithDelayedExecution) *Pacer {
	return &Pacer{own: own, clock: c, buckets: map[contribution]*bucket{}, enough: fewBuckets}
}

// pace has look called because a member has changed its contribution to a service: at once, or when it is due, or not
// where a call is still to come, which will see this change too. (A delay given to the queue would not do: the queue
// forgets it where the service waits there already, and whoever relied on it would be missed.)
func (p *Pacer) pace(c contribution, look func()) {
	wait, due := p.delay(c)
	switch {
	case due && wait == 0:
		look()
	case due:
		p.clock.AfterFunc(wait, look)
	}
}

// delay returns in what time a service is due to be looked at, and false where that is due already.
func (p *Pacer) delay(c contribution) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	b := p.buckets[c]
	if b == nil {
		p.clearOut(now)
		b = &bucket{tokens: rate.NewLimiter(changesPerSecond, changesAtOnce)}
		p.buckets[c] = b
	}
	if now.Before(b.due) {
		return 0, false
	}
	wait := b.tokens.ReserveN(now, 1).DelayFrom(now)
	b.due = now.Add(wait)
	return wait, true
}

// clearOut forgets the buckets that are full, once there are many.
func (p *Pacer) clearOut(now time.Time) {
	if len(p.buckets) < p.enough {
		return
	}
	for c, b := range p.buckets {
		if b.tokens.TokensAt(now) >= changesAtOnce {
			delete(p.buckets, c)
		}
	}
	p.enough = max(fewBuckets, 2*len(p.buckets))
}
