// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tombolo-mcs/tombolo/controllers/queue"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Outcome is the result of the last attempt to publish a service, as reported in the status of its export.
type Outcome struct {
	// Failure is why the hub refused it; empty if it did not.
	Failure string
	// Unanswered is set if the hub did not answer, or could not store anything.
	Unanswered bool
	// LeftOut are the addresses that the Member does not allow, and NotPods those to which no export may lead, and why, sorted.
	LeftOut, NotPods []string
	// Surplus says which slices exceed the limit of a service; empty if none do.
	Surplus string
	// HostNames are the EndpointSlices with host names instead of addresses, sorted. They are not published.
	HostNames []string
}

func (o Outcome) equal(other Outcome) bool {
	return o.Failure == other.Failure && o.Unanswered == other.Unanswered && o.Surplus == other.Surplus && slices.Equal(o.LeftOut, other.LeftOut) &&
		slices.Equal(o.NotPods, other.NotPods) && slices.Equal(o.HostNames, other.HostNames)
}

// Outcomes stores the outcomes that are not empty, and notifies controllers of changes.
type Outcomes struct {
	mu     sync.Mutex
	byKey  map[clusterset.ServiceKey]Outcome
	notify []func(clusterset.ServiceKey)
}

// NewOutcomes returns empty Outcomes.
func NewOutcomes() *Outcomes { return &Outcomes{byKey: map[clusterset.ServiceKey]Outcome{}} }

// Set sets the outcome of a service.
func (o *Outcomes) Set(key clusterset.ServiceKey, outcome Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byKey[key].equal(outcome) {
		return
	}
	o.byKey[key] = outcome
	if outcome.equal(Outcome{}) {
		delete(o.byKey, key)
	}
	for _, notify := range o.notify {
		notify(key)
	}
}

// Of returns the outcome of a service.
func (o *Outcomes) Of(key clusterset.ServiceKey) Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byKey[key]
}

// Source returns a controller's source of services whose outcome changes.
func (o *Outcomes) Source() source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.notify = append(o.notify, func(key clusterset.ServiceKey) { queue.Enqueue(q, 0, key) })
		return nil
	})
}
