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

// Limits for the reverts of one service's records: changes of records that another writer has changed since this agent wrote them. Another
// agent of this cluster may revert each of them, for example one of an earlier version in a copy of the cluster.
const (
	revertInterval = 10 * time.Second
	revertBurst    = 5
)

// Reverts paces the reverts of records.
type Reverts struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	limiters map[clusterset.ServiceKey]*rate.Limiter
	// cleanupSize is the number of limiters at which full ones are removed. A full limiter is equal to a new one.
	cleanupSize int
}

// NewReverts returns Reverts of services that were not reverted yet.
func NewReverts(c clock.PassiveClock) *Reverts {
	return &Reverts{clock: c, limiters: map[clusterset.ServiceKey]*rate.Limiter{}, cleanupSize: minCleanupSize}
}

// Delay returns 0 if the records of a service may be reverted now, and counts that. Otherwise it returns the time until then.
func (r *Reverts) Delay(key clusterset.ServiceKey) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	limiter := r.limiters[key]
	if limiter == nil {
		r.removeFull(now)
		limiter = rate.NewLimiter(rate.Every(revertInterval), revertBurst)
		r.limiters[key] = limiter
	}
	if limiter.AllowN(now, 1) {
		return 0
	}
	missing := 1 - limiter.TokensAt(now)
	return time.Duration(missing*float64(revertInterval)) + time.Millisecond // the rounding must not cause another delay
}

// removeFull removes the full limiters if there are many.
func (r *Reverts) removeFull(now time.Time) {
	if len(r.limiters) < r.cleanupSize {
		return
	}
	for key, limiter := range r.limiters {
		if limiter.TokensAt(now) >= revertBurst {
			delete(r.limiters, key)
		}
	}
	r.cleanupSize = max(minCleanupSize, 2*len(r.limiters))
}
