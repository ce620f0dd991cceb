// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"context"
	"time"

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

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// FromHub returns a controller's source of what changes on the hub. hear decides what news of one service is to the controller. all
// returns the services to look at when any may have changed: after the hub was listed, and when it becomes known what a member
// exports. The sooner it names one, the sooner that is looked at.
func FromHub(store *hub.Store, hear Hear, all func(context.Context) ([]clusterset.ServiceKey, error)) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		everything := make(chan struct{}, 1)
		signal := func() {
			select {
			case everything <- struct{}{}:
			default: // one is pending already
			}
		}
		store.Subscribe(func(news hub.Event) {
			if news.All {
				signal()
				return
			}
			priority := 0
			if news.Backlog {
				priority = handler.LowPriority
			}
			hear(news, func() { Enqueue(q, priority, news.Key) })
		})
		signal()
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-everything:
				}
				keys, err := all(ctx)
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					log.FromContext(ctx).Error(err, "cannot tell which services to look at; trying again")
					time.AfterFunc(time.Second, signal)
				}
				enqueueInOrder(q, keys)
			}
		}()
		return nil
	})
}

// Hear calls look, now or later, where news of one service is a reason to look at it. What is looked at for nothing costs the
// API server a read where it comes between a write and its echo, besides time.
type Hear func(news hub.Event, look func())

// OfRecords admits changes of one member's records only.
func OfRecords(member clusterset.ClusterID) Hear {
	return func(news hub.Event, look func()) {
		if news.Cluster == member {
			look()
		}
	}
}

// OfExports admits what changes a service's exports, whoever's, and nothing of endpoints.
func (p *Pacer) OfExports(news hub.Event, look func()) {
	if !news.Endpoints {
		p.hear(news, look)
	}
}

// OfOthers admits everything but changes of this cluster's own endpoints: those are known by its own API server.
func (p *Pacer) OfOthers(news hub.Event, look func()) {
	if !news.Endpoints || news.Cluster != p.own {
		p.hear(news, look)
	}
}

// hear has what another member changes too often looked at less often.
func (p *Pacer) hear(news hub.Event, look func()) {
	if news.Cluster == "" || news.Cluster == p.own {
		look()
		return
	}
	p.pace(contribution{news.Cluster, news.Key}, look)
}

// headStarts are the sizes of the portions of a long list that go before the rest of it.
var headStarts = [...]int{64, 1024}

// enqueueInOrder adds services to the queue's backlog, where many may wait already: a few that come first, then some more, then
// the rest.
func enqueueInOrder(q queue, keys []clusterset.ServiceKey) {
	for i, size := range headStarts {
		first := min(size, len(keys))
		Enqueue(q, handler.LowPriority+len(headStarts)-i, keys[:first]...)
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

// Typed returns an event handler that enqueues the service which keyOf finds for an object, if any. An object that is
// moved from one service to another by an edit concerns both.
func Typed[T client.Object](keyOf func(client.Object) (types.NamespacedName, bool)) handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, object T) []reconcile.Request {
		key, ok := keyOf(object)
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: key}}
	})
}

// Paced is Typed for objects that the controller writes itself. What a member changes too often would else be looked at with
// each echo of what was written for it, out of step. A mirrored slice counts among the changes of the member that it names as its
// source; what names none, an import or a derived Service, has a pace of its own.
func Paced[T client.Object](pacer *Pacer, keyOf func(client.Object) (types.NamespacedName, bool)) handler.TypedEventHandler[T, reconcile.Request] {
	look := func(q queue, object client.Object) {
		key, ok := keyOf(object)
		if !ok {
			return
		}
		because := contribution{clusterset.ClusterID(object.GetLabels()[mcsv1beta1.LabelSourceCluster]), key}
		pacer.pace(because, func() { Enqueue(q, 0, key) })
	}
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[T], q queue) {
			if key, ok := keyOf(e.Object); ok && e.IsInInitialList {
				Enqueue(q, handler.LowPriority, key)
				return
			}
			look(q, e.Object)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], q queue) {
			before, was := keyOf(e.ObjectOld)
			now, is := keyOf(e.ObjectNew)
			if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() { // a resync
				if is {
					Enqueue(q, handler.LowPriority, now)
				}
				return
			}
			if was && (!is || now != before) { // an edit has taken it from its service
				look(q, e.ObjectOld)
			}
			look(q, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], q queue) { look(q, e.Object) },
	}
}

// Exports returns a controller's source of ServiceExports that come, go or are changed by others. Who writes their status must not be
// woken by that, nor wake others.
func Exports(members cache.Cache) source.Source {
	return source.Kind(members, &mcsv1beta1.ServiceExport{}, Typed[*mcsv1beta1.ServiceExport](SameName),
		predicate.TypedFuncs[*mcsv1beta1.ServiceExport]{UpdateFunc: func(e event.TypedUpdateEvent[*mcsv1beta1.ServiceExport]) bool {
			return changesExport(e.ObjectOld, e.ObjectNew)
		}})
}

// changesExport reports whether more than the status or the metadata of a ServiceExport has changed, or it is as it was, as after a
// resync. A watch that was interrupted shows one that was made anew as an update.
func changesExport(before, after *mcsv1beta1.ServiceExport) bool {
	return before.ResourceVersion == after.ResourceVersion || before.UID != after.UID || before.Generation != after.Generation ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
}

// SameName is a key function for objects that bear their service's name.
func SameName(object client.Object) (types.NamespacedName, bool) {
	return client.ObjectKeyFromObject(object), true
}
