// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// FromMembers returns a controller's source of one request: at the start, when a Member is read or has left, and after each list of the hub.
// A list that lacks a Member is no event of that member.
func FromMembers(store *hub.Store, request types.NamespacedName) source.Source {
	return source.Func(func(_ context.Context, q queue) error {
		enqueue := func() { Enqueue(q, 0, request) }
		onMembers(store, enqueue)
		store.Subscribe(func(event hub.Event) {
			if event.All {
				enqueue()
			}
		})
		enqueue()
		return nil
	})
}

// OfMembers returns a controller's source of the services that list returns, at the start and when a Member is read or has left.
func OfMembers(store *hub.Store, list func(context.Context) ([]clusterset.ServiceKey, error)) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		signal := coalesce(ctx, func(again func()) { enqueueAll(ctx, q, list, again) })
		onMembers(store, signal)
		signal()
		return nil
	})
}

// onMembers calls notify when a Member is read or has left.
func onMembers(store *hub.Store, notify func()) {
	store.SubscribeMembers(func(event hub.MemberEvent) {
		if event.Type == hub.MemberSeen || event.Type == hub.MemberLeft {
			notify()
		}
	})
}

// coalesce returns a function that requests a call of run. A goroutine calls run until ctx ends; requests that arrive before a call begins
// are one. again is the same function.
func coalesce(ctx context.Context, run func(again func())) (signal func()) {
	pending := make(chan struct{}, 1)
	signal = func() {
		select {
		case pending <- struct{}{}:
		default: // one is pending already
		}
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-pending:
				run(signal)
			}
		}
	}()
	return signal
}

// enqueueAll enqueues the services that list returns. If it fails, it does so again in a second.
func enqueueAll(ctx context.Context, q queue, list func(context.Context) ([]clusterset.ServiceKey, error), again func()) {
	keys, err := list(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot list the services to reconcile; retrying in 1 s")
		time.AfterFunc(time.Second, again)
	}
	enqueueInOrder(q, keys)
}
