// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package queue enqueues services for the controllers: it filters and paces events of the hub and of the member, and requeues services
// whose writes were refused.
package queue

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/hub"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// FromHub returns a controller's source of changes on the hub. filter selects the events of single services. all returns the services
// to reconcile, most urgent first, when any service may have changed: when hub.Store.InitialListDone, after a list of the hub, and when a
// member is confirmed.
func FromHub(store *hub.Store, filter Filter, all func(context.Context) ([]clusterset.ServiceKey, error)) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		signal := coalesce(ctx, func(again func()) { enqueueAll(ctx, q, all, again) })
		store.Subscribe(func(event hub.Event) {
			if event.All {
				signal()
				return
			}
			priority := 0
			if event.Backlog {
				priority = handler.LowPriority
			}
			filter(event, func() { Enqueue(q, priority, event.Key) })
		})
		if store.InitialListDone() { // otherwise the store sends an event for all services when it is
			signal()
		}
		return nil
	})
}

// FromSignal returns a controller's source of the services that all returns, each time that subscribe's argument is called.
func FromSignal(subscribe func(notify func()), all func(context.Context) ([]clusterset.ServiceKey, error)) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		subscribe(coalesce(ctx, func(again func()) { enqueueAll(ctx, q, all, again) }))
		return nil
	})
}

// Kind returns a controller's source of the changes of a kind. It drops the objects that exist at the start, whose services FromHub
// enqueues.
func Kind[T client.Object](
	members cache.Cache, of T, handler handler.TypedEventHandler[T, reconcile.Request], predicates ...predicate.TypedPredicate[T],
) source.Source {
	later := predicate.TypedFuncs[T]{CreateFunc: func(e event.TypedCreateEvent[T]) bool { return !e.IsInInitialList }}
	return source.Kind(members, of, handler, append(predicates, later)...)
}

// Filter calls enqueue, now or later, if a controller must reconcile the service of an event. Each event that it drops saves a
// reconciliation, and a read of the API server if that would fall between a write and its watch event.
type Filter func(event hub.Event, enqueue func())

// RecordsOf returns a filter for changes of one member's records.
func RecordsOf(member clusterset.ClusterID) Filter {
	return func(event hub.Event, enqueue func()) {
		if event.Cluster == member {
			enqueue()
		}
	}
}

// Exports is a filter for changes of the exports of a service, without those of endpoints.
func (p *Pacer) Exports(event hub.Event, enqueue func()) {
	if !event.Endpoints {
		p.filter(event, enqueue)
	}
}

// Remote is a filter for all changes but those of local endpoints, which the local API server reports.
func (p *Pacer) Remote(event hub.Event, enqueue func()) {
	if !event.Endpoints || event.Cluster != p.own {
		p.filter(event, enqueue)
	}
}

// filter paces the events of other members.
func (p *Pacer) filter(event hub.Event, enqueue func()) {
	if event.Cluster == "" || event.Cluster == p.own {
		enqueue()
		return
	}
	p.pace(bucketKey{event.Cluster, event.Key}, enqueue)
}

// batchSizes are the sizes of the first batches of a long list, which have a higher priority than the rest.
var batchSizes = [...]int{64, 1024}

// enqueueInOrder adds services to the backlog of the queue, which may be long already. The first batches have a higher priority.
func enqueueInOrder(q queue, keys []clusterset.ServiceKey) {
	for i, size := range batchSizes {
		first := min(size, len(keys))
		Enqueue(q, handler.LowPriority+len(batchSizes)-i, keys[:first]...)
		keys = keys[first:]
	}
	Enqueue(q, handler.LowPriority, keys...)
}

// Enqueue adds services to a controller's queue without delay.
func Enqueue(q queue, priority int, keys ...clusterset.ServiceKey) {
	requests := make([]reconcile.Request, len(keys))
	for i, key := range keys {
		requests[i] = reconcile.Request{NamespacedName: key}
	}
	if pq, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		pq.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, requests...)
		return
	}
	for _, request := range requests {
		q.Add(request)
	}
}

// keyFunc returns the service of an object, if it has one.
type keyFunc = func(client.Object) (types.NamespacedName, bool)

// Typed returns an event handler that enqueues the service that keyOf returns for an object, if any. If an update moves an object
// to another service, it enqueues both.
func Typed[T client.Object](keyOf keyFunc) handler.TypedEventHandler[T, reconcile.Request] {
	return enqueueIf[T](func(context.Context, clusterset.ServiceKey) bool { return true }, keyOf)
}

// OfExports is Typed for objects that matter only to services with a ServiceExport, such as Services: most of a cluster have none. A
// ServiceExport that is created later enqueues its service itself.
func OfExports[T client.Object](
	hasExport func(context.Context, clusterset.ServiceKey) (bool, error), keyOf keyFunc,
) handler.TypedEventHandler[T, reconcile.Request] {
	return enqueueIf[T](func(ctx context.Context, key clusterset.ServiceKey) bool {
		exported, err := hasExport(ctx, key)
		return exported || err != nil // the reconciliation reports the error
	}, keyOf)
}

func enqueueIf[T client.Object](
	matters func(context.Context, clusterset.ServiceKey) bool, keyOf keyFunc,
) handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, object T) []reconcile.Request {
		key, ok := keyOf(object)
		if !ok || !matters(ctx, key) {
			return nil
		}
		return []reconcile.Request{{NamespacedName: key}}
	})
}

// Paced is Typed for objects that the controller writes itself. It paces their events, because each write for a member that changes
// often would otherwise cause another reconciliation. The events of a mirrored slice count as changes of its source cluster.
// Objects without a source cluster, such as imports and derived Services, have a bucket of their own.
func Paced[T client.Object](pacer *Pacer, keyOf keyFunc) handler.TypedEventHandler[T, reconcile.Request] {
	pace := func(q queue, object client.Object) {
		key, ok := keyOf(object)
		if !ok {
			return
		}
		bucket := bucketKey{clusterset.ClusterID(object.GetLabels()[mcsv1beta1.LabelSourceCluster]), key}
		pacer.pace(bucket, func() { Enqueue(q, 0, key) })
	}
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[T], q queue) { pace(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], q queue) {
			before, was := keyOf(e.ObjectOld)
			now, is := keyOf(e.ObjectNew)
			if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() { // a resync
				if is {
					Enqueue(q, handler.LowPriority, now)
				}
				return
			}
			if was && (!is || now != before) { // it was moved to another service
				pace(q, e.ObjectOld)
			}
			pace(q, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], q queue) { pace(q, e.Object) },
	}
}

// Exports returns a controller's source of ServiceExports that are created, deleted or changed by others. It drops updates of the
// status, which agents write themselves.
func Exports(members cache.Cache) source.Source {
	return Kind(members, &mcsv1beta1.ServiceExport{}, Typed[*mcsv1beta1.ServiceExport](SameName),
		predicate.TypedFuncs[*mcsv1beta1.ServiceExport]{UpdateFunc: func(e event.TypedUpdateEvent[*mcsv1beta1.ServiceExport]) bool {
			return changesExport(e.ObjectOld, e.ObjectNew)
		}})
}

// Grants returns a controller's source of the services of a namespace whose ServiceExportGrants change. exportsIn lists its exports.
func Grants(members cache.Cache, exportsIn func(ctx context.Context, namespace string) ([]clusterset.ServiceKey, error)) source.Source {
	enqueue := handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, grant *policyv1alpha1.ServiceExportGrant) []reconcile.Request {
		keys, err := exportsIn(ctx, grant.Namespace)
		if err != nil {
			log.FromContext(ctx).Error(err, "cannot list the services whose grants have changed", "namespace", grant.Namespace)
		}
		requests := make([]reconcile.Request, len(keys))
		for i, key := range keys {
			requests[i] = reconcile.Request{NamespacedName: key}
		}
		return requests
	})
	return Kind(members, &policyv1alpha1.ServiceExportGrant{}, enqueue, SpecChanges[*policyv1alpha1.ServiceExportGrant]())
}

// SpecChanges drops updates that change only the status or the metadata of an object. After an interrupted watch, an object that was
// deleted and created again appears as an update, so predicate.GenerationChangedPredicate is not sufficient.
func SpecChanges[T client.Object]() predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{UpdateFunc: func(e event.TypedUpdateEvent[T]) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
	}}
}

// changesExport reports whether more than the status or unused metadata of a ServiceExport has changed, or nothing, as in a resync.
// After an interrupted watch, an export that was deleted and created again appears as an update.
func changesExport(before, after *mcsv1beta1.ServiceExport) bool {
	return before.ResourceVersion == after.ResourceVersion || before.UID != after.UID || before.Generation != after.Generation ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() || clusterset.IsGrantedOnly(before) != clusterset.IsGrantedOnly(after)
}

// SameName is a key function for objects with the name of their service.
func SameName(object client.Object) (types.NamespacedName, bool) {
	return client.ObjectKeyFromObject(object), true
}
