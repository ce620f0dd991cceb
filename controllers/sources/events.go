// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// FromHub returns a controller's source of what changes on the hub. all returns the services to look at when any may
// have changed: after the hub was listed, and when it becomes known what a member exports. What another member changes
// too often is looked at less often.
func FromHub(store *hub.Store, all func(context.Context) ([]clusterset.ServiceKey, error)) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		everything := make(chan struct{}, 1)
		signal := func() {
			select {
			case everything <- struct{}{}:
			default: // one is pending already
			}
		}
		pacer := newPacer(clock.RealClock{})
		store.Subscribe(func(event hub.Event) {
			if event.All {
				signal()
				return
			}
			priority := 0
			if event.Backlog {
				priority = handler.LowPriority
			}
			if event.Cluster == "" {
				Enqueue(q, priority, event.Key)
				return
			}
			pacer.pace(contribution{event.Cluster, event.Key}, func() { Enqueue(q, priority, event.Key) })
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
				Enqueue(q, handler.LowPriority, keys...)
			}
		}()
		return nil
	})
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

// SameName is a key function for objects that bear their service's name.
func SameName(object client.Object) (types.NamespacedName, bool) {
	return client.ObjectKeyFromObject(object), true
}
