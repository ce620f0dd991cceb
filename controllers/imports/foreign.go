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

// foreignObjects returns an event handler for unmanaged Services and slices. If one is deleted or gets another managed-by label, it
// enqueues the imports that may need its name (apply.ErrUnmanaged). It lists all imports of the namespace, because such objects are
// rare.
func foreignObjects[T client.Object](r *Reconciler) handler.TypedEventHandler[T, reconcile.Request] {
	enqueue := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request], object client.Object) {
		name, isDerived := clusterset.DerivedNameOf(object.GetName())
		isVirtual := clusterset.IsVirtualIPName(object.GetName())
		if !isDerived && !isVirtual || clusterset.ManagerOf(object) == clusterset.ManagedBy {
			return
		}
		list := &mcsv1beta1.ServiceImportList{}
		if err := r.Member.List(ctx, list, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "cannot find which imports wait for a name", "name", name)
		}
		if isVirtual { // the name does not say which import wants it
			for i := range list.Items {
				queue.Enqueue(q, 0, client.ObjectKeyFromObject(&list.Items[i]))
			}
			return
		}
		queue.Enqueue(q, 0, importsByDerivedName(name, list.Items)...)
	}
	return handler.TypedFuncs[T, reconcile.Request]{
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[T], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if clusterset.ManagerOf(e.ObjectOld) != clusterset.ManagerOf(e.ObjectNew) {
				enqueue(ctx, q, e.ObjectOld)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[T], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(ctx, q, e.Object)
		},
	}
}

// importsByDerivedName returns the imports whose derived Service may have this name.
func importsByDerivedName(name string, imports []mcsv1beta1.ServiceImport) []clusterset.ServiceKey {
	var keys []clusterset.ServiceKey
	for i := range imports {
		if service := imports[i].Name; name == clusterset.ShortDerivedName(service) || name == clusterset.LongDerivedName(service) {
			keys = append(keys, client.ObjectKeyFromObject(&imports[i]))
		}
	}
	return keys
}
