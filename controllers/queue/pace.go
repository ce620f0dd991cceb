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

// Limits for the changes of one member to one service: each write on the hub causes a write in every other member (decision 1).
// Each reconciliation takes a token. The first changes are never delayed.
const (
	changesPerSecond = 20
	changeBurst      = 50
)

// minCleanupSize is the number of buckets up to which none are removed.
const minCleanupSize = 1024

// Pacer delays the reconciliation of a service that a member changes too often. It has a token bucket for each member and service.
type Pacer struct {
	own   clusterset.ClusterID
	clock clock.WithDelayedExecution

	mu      sync.Mutex
	buckets map[bucketKey]*bucket
	// cleanupSize is the number of buckets at which full ones are removed. A full bucket is equal to a new one.
	cleanupSize int
}

// bucketKey identifies the changes of one member to one service. Without a member, these are changes of objects that this agent
// writes.
type bucketKey struct {
	cluster clusterset.ClusterID
	service clusterset.ServiceKey
}

type bucket struct {
	tokens *rate.Limiter
	// due is the time of the next reconciliation for changes of the member.
	due time.Time
}

// NewPacer returns a Pacer of a cluster, with full buckets.
func NewPacer(own clusterset.ClusterID, c clock.WithDelayedExecution) *Pacer {
	return &Pacer{own: own, clock: c, buckets: map[bucketKey]*bucket{}, cleanupSize: minCleanupSize}
}

// pace calls enqueue for a change of a service: at once, or when a token is available. It does not call it if an earlier call is
// still due, because that includes this change. (A delay in the queue would not do: the queue drops it if the service is queued
// already, and changes would be missed.)
func (p *Pacer) pace(c bucketKey, enqueue func()) {
	wait, due := p.delay(c)
	switch {
	case due && wait == 0:
		enqueue()
	case due:
		p.clock.AfterFunc(wait, enqueue)
	}
}

// delay returns the time until the next reconciliation of a service. It reports false if one is due already.
func (p *Pacer) delay(c bucketKey) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	b := p.buckets[c]
	if b == nil {
		p.removeFullBuckets(now)
		b = &bucket{tokens: rate.NewLimiter(changesPerSecond, changeBurst)}
		p.buckets[c] = b
	}
	if now.Before(b.due) {
		return 0, false
	}
	wait := b.tokens.ReserveN(now, 1).DelayFrom(now)
	b.due = now.Add(wait)
	return wait, true
}

// removeFullBuckets removes the full buckets if there are many.
func (p *Pacer) removeFullBuckets(now time.Time) {
	if len(p.buckets) < p.cleanupSize {
		return
	}
	for c, b := range p.buckets {
		if b.tokens.TokensAt(now) >= changeBurst {
			delete(p.buckets, c)
		}
	}
	p.cleanupSize = max(minCleanupSize, 2*len(p.buckets))
}
