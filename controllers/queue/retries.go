// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tombolo-mcs/tombolo/internal/apply"
)

// The first and the longest delay before a refused write is retried.
const (
	minRetryDelay = 10 * time.Millisecond
	maxRetryDelay = 5 * time.Minute
)

// probeInterval is the time until one refused service is retried, whatever its delay. No event reports that an API server accepts what it
// has refused: one that was restarted refuses every write until its policies have found their kinds, which takes up to 30 s. If the
// same services have been refused for long, the time is a probeShare of that.
const (
	probeInterval = 5 * time.Second
	probeShare    = 20
)

// Retries is a Reconciler that decides by the error of another one when a service is retried. It logs the error of each attempt.
type Retries struct {
	inner reconcile.Reconciler
	clock clock.WithDelayedExecution

	mu      sync.Mutex
	backoff workqueue.TypedRateLimiter[reconcile.Request]
	// refused are the services whose last attempt was refused, in the order in which RetryOldest retries them.
	refused []reconcile.Request
	// queue is the controller's queue, in which refused services are enqueued; nil outside of a controller.
	queue queue
	// since is when a service was refused that was not refused before, or when a refused one was accepted.
	since time.Time
	// probe enqueues the next refused service at due; nil if there is none.
	probe clock.Timer
	due   time.Time
}

// NewRetries returns Retries for the errors of a Reconciler.
func NewRetries(inner reconcile.Reconciler) *Retries {
	r := &Retries{inner: inner, clock: clock.RealClock{}}
	r.ResetBackoff()
	return r
}

// ResetBackoff resets the delays of all services, because the reason for the refusals may be gone.
func (r *Retries) ResetBackoff() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.backoff = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetryDelay, maxRetryDelay)
}

// Reconcile calls the other Reconciler. After ErrStale and ErrUnmanaged, a watch event enqueues the service again. After a refusal by
// an API server, the delay increases with each attempt. The controller retries other errors.
func (r *Retries) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := r.inner.Reconcile(ctx, request)
	switch {
	case err == nil:
		r.accept(request)
	case errors.Is(err, apply.ErrStale):
		return reconcile.Result{RequeueAfter: apply.RetryAfter(err)}, nil
	case apply.IsUnmanaged(err):
		r.accept(request)
		return result, nil
	case errors.Is(err, reconcile.TerminalError(nil)):
		r.remove(request)
	case apply.IsRefused(err):
		after := r.refuse(request)
		if result.RequeueAfter > 0 {
			after = min(after, result.RequeueAfter)
		}
		log.FromContext(ctx).Error(err, "an API server refuses it; trying again later", "after", after)
		return reconcile.Result{RequeueAfter: after}, nil
	}
	return result, err
}

// source returns the controller's source of refused services that are retried before their delay is over.
func (r *Retries) source() source.Source {
	return source.Func(func(_ context.Context, q queue) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.queue = q
		return nil
	})
}

// RetryOldest enqueues the service at the front of refused and resets its delay, because a quota may have room for it. If the
// attempt succeeds, the next service follows. (To retry all of them would cost a refused write for each.)
func (r *Retries) RetryOldest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if first, ok := r.enqueueOldest(); ok {
		r.backoff.Forget(first)
	}
}

// enqueueOldest enqueues the service at the front of refused, and moves it to the end. It reports false if there is none.
func (r *Retries) enqueueOldest() (reconcile.Request, bool) {
	if r.queue == nil || len(r.refused) == 0 {
		return reconcile.Request{}, false
	}
	first := r.refused[0]
	r.refused = append(r.refused[1:], first)
	Enqueue(r.queue, 0, first.NamespacedName)
	return first, true
}

// probeLater has the service at the front of refused retried after a time, unless a probe is due before. If the service is refused again,
// the next one follows after another interval; if it is accepted, at once.
func (r *Retries) probeLater() {
	if r.queue == nil || len(r.refused) == 0 {
		return
	}
	now := r.clock.Now()
	due := now.Add(probeAfter(now.Sub(r.since)))
	if r.probe != nil {
		if !due.Before(r.due) {
			return
		}
		r.probe.Stop()
	}
	r.due = due
	r.probe = r.clock.AfterFunc(due.Sub(now), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.probe = nil
		r.enqueueOldest()
	})
}

// probeAfter returns the time until the next probe if the same services have been refused for a time.
func probeAfter(refused time.Duration) time.Duration {
	return min(max(probeInterval, refused/probeShare), maxRetryDelay)
}

func (r *Retries) accept(request reconcile.Request) {
	if r.remove(request) {
		r.RetryOldest()
	}
}

// remove removes a service from refused and resets its delay. It reports whether the service was in it.
func (r *Retries) remove(request reconcile.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.backoff.Forget(request)
	i := slices.Index(r.refused, request)
	if i < 0 {
		return false
	}
	r.refused = slices.Delete(r.refused, i, i+1)
	r.since = r.clock.Now()
	r.probeLater() // the service may have been the one that was retried
	return true
}

// refuse adds a service to refused, and returns the delay of its next attempt.
func (r *Retries) refuse(request reconcile.Request) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.refused, request) {
		r.refused = append(r.refused, request)
		r.since = r.clock.Now()
	}
	r.probeLater()
	return r.backoff.When(request)
}
