// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/queue"
	"github.com/tombolo-mcs/tombolo/internal/importing"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// gatewayChanges is a source that enqueues the imports to which changes of what the gateways report matter.
func (r *Reconciler) gatewayChanges(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.GatewayReach.Subscribe(func(id clusterset.ClusterID) {
		for _, request := range r.throughGateways(ctx, id) {
			queue.Enqueue(q, 0, request.NamespacedName)
		}
	})
	r.GatewayReach.SubscribePorts(func(numbers sets.Set[int32]) {
		go func() { // the allocator may be storing its state
			for key := range r.GatewayPorts.services(numbers) {
				queue.Enqueue(q, 0, key)
			}
		}()
	})
	r.VirtualIPs.Subscribe(func(key clusterset.ServiceKey) { queue.Enqueue(q, 0, key) })
	return nil
}

// importsOfGateways enqueues the imports with slices of gateways if an EndpointSlice of this cluster's gateways changes.
func (r *Reconciler) importsOfGateways() handler.TypedEventHandler[*discoveryv1.EndpointSlice, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, slice *discoveryv1.EndpointSlice) []reconcile.Request {
		if service, ok := caches.SourceService(slice); !ok || service != r.Sources.GatewayService() {
			return nil
		}
		return r.throughGateways(ctx, reach.EveryCluster)
	})
}

// throughGateways returns the imports with slices of gateways for a source cluster.
func (r *Reconciler) throughGateways(ctx context.Context, source clusterset.ClusterID) []reconcile.Request {
	list := &discoveryv1.EndpointSliceList{}
	if err := r.Member.List(ctx, list, client.MatchingLabels{clusterset.LabelGateway: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot find the imports that use gateways")
	}
	imports := sets.New[reconcile.Request]()
	for i := range list.Items {
		slice := &list.Items[i]
		if service, ok := caches.MirroredService(slice); ok && (source == reach.EveryCluster || importing.SourceOf(slice) == source) {
			imports.Insert(reconcile.Request{NamespacedName: service})
		}
	}
	return imports.UnsortedList()
}

// gatewayService enqueues all services if the Service of this cluster's gateways is created or deleted.
func (r *Reconciler) gatewayService() handler.TypedEventHandler[*corev1.Service, reconcile.Request] {
	refresh := func(service *corev1.Service) {
		if client.ObjectKeyFromObject(service) == r.Sources.GatewayService() {
			r.Sources.Hub.Refresh()
		}
	}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.TypedFuncs[*corev1.Service, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Service], _ queue) { refresh(e.Object) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Service], _ queue) { refresh(e.Object) },
	}
}

// firstProbe is a source without events, which is synced when the agent has probed the gateways once. Until then, what slices list stays as
// it is: an agent that has just started does not know on which ports a gateway listens (G8).
type firstProbe struct{ known *reach.Reach }

// Start implements source.Source.
func (firstProbe) Start(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return nil
}

// WaitForSync implements source.SyncingSource.
func (p firstProbe) WaitForSync(ctx context.Context) error {
	select {
	case <-p.known.Probed():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the first probe of the gateways: %w", context.Cause(ctx))
	}
}
