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
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tombolo-mcs/tombolo/pkg/apply"
)

// After how long what an API server has refused is tried again: first and at most.
const (
	firstRetry = 10 * time.Millisecond
	lastRetry  = 5 * time.Minute
)

// Retries is a Reconciler that decides by another's error when a service is tried again. The error is logged once for each try.
type Retries struct {
	inner reconcile.Reconciler

	mu      sync.Mutex
	backoff workqueue.TypedRateLimiter[reconcile.Request]
	// refused are the services whose last try was refused, in the order in which they are tried when there may be room.
	refused []reconcile.Request
	// queue is set where a refused service is tried again because another made room.
	queue queue
}

// NewRetries returns Retries of what a Reconciler has failed to do.
func NewRetries(inner reconcile.Reconciler) *Retries {
	r := &Retries{inner: inner}
	r.Reset()
	return r
}

// Reset has the next refusal of each service be tried again soon, as the reason for the refusals may be gone.
func (r *Retries) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.backoff = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)
}

// Reconcile calls the other Reconciler. After ErrStale and ErrForeign a watch brings the next try. What an API server refuses is
// tried again later and later; what has failed otherwise is left to the controller.
func (r *Retries) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := r.inner.Reconcile(ctx, request)
	switch {
	case err == nil:
		r.accept(request)
	case errors.Is(err, apply.ErrStale):
		return reconcile.Result{RequeueAfter: apply.RetryAfter(err)}, nil
	case apply.IsForeign(err):
		return reconcile.Result{}, nil
	case errors.Is(err, reconcile.TerminalError(nil)):
		r.remove(request)
	case apply.IsRefused(err):
		after := r.refuse(request)
		log.FromContext(ctx).Error(err, "an API server refuses it; trying again later", "after", after)
		return reconcile.Result{RequeueAfter: after}, nil
	}
	return result, err
}

// Source returns the controller's source of refused services that are tried again because there may be room for them now.
func (r *Retries) Source() source.Source {
	return source.Func(func(_ context.Context, q queue) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.queue = q
		return nil
	})
}

// Freed has the service that was refused first tried again, now and soon after: a quota may have room for it. If that succeeds,
// the next one follows. (To try all of them would cost a refused write for each.)
func (r *Retries) Freed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queue == nil || len(r.refused) == 0 {
		return
	}
	first := r.refused[0]
	r.refused = append(r.refused[1:], first)
	r.backoff.Forget(first)
	Enqueue(r.queue, 0, first.NamespacedName)
}

func (r *Retries) accept(request reconcile.Request) {
	if r.remove(request) {
		r.Freed()
	}
}

// remove reports whether the last try of a service was refused, and forgets that.
func (r *Retries) remove(request reconcile.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.backoff.Forget(request)
	i := slices.Index(r.refused, request)
	if i < 0 {
		return false
	}
	r.refused = slices.Delete(r.refused, i, i+1)
	return true
}

// refuse notes a refusal and returns after how long to try again.
func (r *Retries) refuse(request reconcile.Request) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.refused, request) {
		r.refused = append(r.refused, request)
	}
	return r.backoff.When(request)
}
