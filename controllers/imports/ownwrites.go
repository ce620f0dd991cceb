// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"maps"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/importing"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// ownWrites finds the watch events that only report what the last reconciliation of a service has written: no reconciliation is needed for
// them. If another reconciliation has begun between the write and its event, it may have read the cache without the write, so the event
// enqueues the service. The zero value is ready for use.
type ownWrites struct {
	mu       sync.Mutex
	services map[clusterset.ServiceKey]*serviceWrites
}

// serviceWrites are the writes of a service's last reconciliation.
type serviceWrites struct {
	running bool
	// versions are the resource versions of the written objects whose events have not been received.
	versions sets.Set[string]
	// received are the events since the reconciliation has begun, by resource version. The event of a write can be faster than its response.
	received map[string]func()
}

// begin is called before a reconciliation of a service reads the cache.
func (w *ownWrites) begin(key clusterset.ServiceKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.services == nil {
		w.services = map[clusterset.ServiceKey]*serviceWrites{}
	}
	w.services[key] = &serviceWrites{running: true, versions: sets.Set[string]{}, received: map[string]func(){}}
}

// add stores the resource version of a slice that a reconciliation has written, as the API server has returned it.
func (w *ownWrites) add(key clusterset.ServiceKey, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.services[key].versions.Insert(version)
}

// end is called when a reconciliation has ended. It processes the events that it has not caused.
func (w *ownWrites) end(key clusterset.ServiceKey) {
	w.mu.Lock()
	s := w.services[key]
	var others []func()
	for version, process := range s.received {
		if !s.versions.Has(version) {
			others = append(others, process)
		}
		s.versions.Delete(version)
	}
	s.running, s.received = false, nil
	w.forgetComplete(key)
	w.mu.Unlock()
	for _, process := range others {
		process()
	}
}

// receive calls process for an event unless it reports a write of the last reconciliation. While a reconciliation runs, it waits for the end,
// before which the service could not be reconciled again.
func (w *ownWrites) receive(key clusterset.ServiceKey, version string, process func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch s := w.services[key]; {
	case s == nil:
		process()
	case s.running:
		s.received[version] = process
	case s.versions.Has(version):
		s.versions.Delete(version)
		w.forgetComplete(key)
	default:
		process()
	}
}

// forgetComplete removes a service whose writes have all been reported.
func (w *ownWrites) forgetComplete(key clusterset.ServiceKey) {
	if s := w.services[key]; !s.running && len(s.versions) == 0 {
		delete(w.services, key)
	}
}

// without returns a handler of the events of mirrored slices that ignores the updates which only report own writes. It does not ignore those of
// gateways' slices, from which the listening ports may just have been read, nor changes of labels, by which others find a slice.
func (w *ownWrites) without(all handler.TypedEventHandler[*discoveryv1.EndpointSlice, reconcile.Request]) handler.TypedEventHandler[*discoveryv1.EndpointSlice, reconcile.Request] {
	return handler.TypedFuncs[*discoveryv1.EndpointSlice, reconcile.Request]{
		CreateFunc: all.Create, DeleteFunc: all.Delete, GenericFunc: all.Generic,
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*discoveryv1.EndpointSlice], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			process := func() { all.Update(context.WithoutCancel(ctx), e, q) }
			key, ok := caches.MirroredService(e.ObjectNew)
			isResync := e.ObjectOld.ResourceVersion == e.ObjectNew.ResourceVersion
			if !ok || isResync || importing.IsGatewaySlice(e.ObjectNew) || !maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) {
				process()
				return
			}
			w.receive(key, e.ObjectNew.ResourceVersion, process)
		},
	}
}
