// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/queue"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

type enqueuer = workqueue.TypedRateLimitingInterface[reconcile.Request]

// gather returns the sources of a service, and the slices of the local export without what the backend rules leave out.
func (r *Reconciler) gather(ctx context.Context, key clusterset.ServiceKey) (known sources.Sources, allowed []clusterset.Slice, leftOut export.LeftOut, err error) {
	if known, err = r.Sources.Read(ctx, key); err != nil || known.Local == nil {
		return known, nil, leftOut, err
	}
	own, err := r.Sources.LocalSlices(ctx, key)
	if err == nil {
		allowed, leftOut, err = r.Sources.AllowedEndpoints(ctx, known, own)
	}
	return known, allowed, leftOut, err
}

// withLeftOut returns an outcome with what the backend rules have left out.
func withLeftOut(outcome Outcome, leftOut export.LeftOut) Outcome {
	all := append(texts(leftOut.OutsideRanges), outcome.LeftOut...)
	slices.Sort(all)
	outcome.LeftOut, outcome.NotPods = slices.Compact(all), texts(leftOut.NotPods)
	return outcome
}

// ofRestricted enqueues the services with an endpoint that is no longer an address of a gateway or an API server of this cluster, or is one now.
func (r *Reconciler) ofRestricted() handler.TypedEventHandler[*discoveryv1.EndpointSlice, reconcile.Request] {
	type slice = *discoveryv1.EndpointSlice
	enqueue := func(ctx context.Context, q enqueuer, before, after slice) {
		if r.Sources.IsRestricted(before) || r.Sources.IsRestricted(after) {
			keys, err := r.Sources.ExportKeysAt(ctx, before, after)
			if err != nil {
				log.FromContext(ctx).Error(err, "cannot find the exports with addresses of gateways")
			}
			queue.Enqueue(q, 0, keys...)
		}
	}
	none := &discoveryv1.EndpointSlice{}
	return handler.TypedFuncs[slice, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[slice], q enqueuer) {
			enqueue(ctx, q, none, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[slice], q enqueuer) {
			enqueue(ctx, q, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[slice], q enqueuer) {
			enqueue(ctx, q, e.Object, none)
		},
	}
}

// ofHostPods enqueues the exports of the namespace of a pod in the host network.
func (r *Reconciler) ofHostPods() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*corev1.Pod], q enqueuer) {
			r.enqueueExportsIn(ctx, q, e.Object.Namespace)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Pod], q enqueuer) {
			if !slices.Equal(caches.PodAddresses(e.ObjectOld), caches.PodAddresses(e.ObjectNew)) {
				r.enqueueExportsIn(ctx, q, e.ObjectNew.Namespace)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*corev1.Pod], q enqueuer) {
			r.enqueueExportsIn(ctx, q, e.Object.Namespace)
		},
	}
}

func (r *Reconciler) enqueueExportsIn(ctx context.Context, q enqueuer, namespace string) {
	keys, err := r.Sources.ExportKeysIn(ctx, namespace)
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot list the exports of a namespace", "namespace", namespace)
	}
	queue.Enqueue(q, 0, keys...)
}
