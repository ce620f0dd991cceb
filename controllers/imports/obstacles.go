// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/queue"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// obstacles returns an event handler that enqueues the imports for which a Service or slice of somebody else may have been in the
// way (apply.ErrForeign), when it is deleted or another's mark is taken from it. Such an object is rare, so no index is kept for it.
func obstacles[T client.Object](r *Reconciler) handler.TypedEventHandler[T, reconcile.Request] {
	free := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request], object client.Object) {
		name, ok := clusterset.DerivedNameOf(object.GetName())
		if !ok || clusterset.MarkOf(object) == clusterset.ManagedBy {
			return
		}
		list := &mcsv1beta1.ServiceImportList{}
		if err := r.Member.List(ctx, list, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "cannot find which imports wait for a name", "name", name)
		}
		queue.Enqueue(q, 0, obstructedBy(name, list.Items)...)
	}
	return handler.TypedFuncs[T, reconcile.Request]{
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[T], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if clusterset.MarkOf(e.ObjectOld) != clusterset.MarkOf(e.ObjectNew) {
				free(ctx, q, e.ObjectOld)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[T], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			free(ctx, q, e.Object)
		},
	}
}

// obstructedBy returns the imports whose derived Service may have a name.
func obstructedBy(name string, imports []mcsv1beta1.ServiceImport) []clusterset.ServiceKey {
	var keys []clusterset.ServiceKey
	for i := range imports {
		if service := imports[i].Name; name == clusterset.ShortDerivedName(service) || name == clusterset.LongDerivedName(service) {
			keys = append(keys, client.ObjectKeyFromObject(&imports[i]))
		}
	}
	return keys
}
