// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// feed watches one kind for as long as its context lasts, and tells each object that is there, comes or changes. An API
// server cuts off a watcher that cannot keep up; the feed lists again then, and counts it.
type feed struct {
	tell   func(client.Object)
	synced chan struct{}
	listed atomic.Int32
}

// openFeed returns when all that is there has been told. tell is never called twice at a time.
func openFeed(ctx context.Context, c client.WithWatch, list client.ObjectList, in string, tell func(client.Object)) (*feed, error) {
	f := &feed{tell: tell, synced: make(chan struct{})}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			into := list.DeepCopyObject().(client.ObjectList)
			return into, c.List(ctx, into, &client.ListOptions{Namespace: in, Raw: &o})
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list, &client.ListOptions{Namespace: in, Raw: &o})
		},
	}
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(source, c), nil, f, cache.ReflectorOptions{})
	go reflector.RunWithContext(ctx)
	select {
	case <-f.synced:
		return f, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Add tells a new object.
func (f *feed) Add(object any) error { return f.Update(object) }

// Update tells an object as it is now.
func (f *feed) Update(object any) error {
	f.tell(object.(client.Object))
	return nil
}

// Delete tells nothing: rounds end before anything is deleted.
func (f *feed) Delete(any) error { return nil }

// Replace tells all objects of a list.
func (f *feed) Replace(objects []any, _ string) error {
	for _, object := range objects {
		f.tell(object.(client.Object))
	}
	if f.listed.Add(1) == 1 {
		close(f.synced)
	}
	return nil
}

// Resync does nothing.
func (f *feed) Resync() error { return nil }

// cutOff returns how often the API server has cut the feed off.
func (f *feed) cutOff() int { return int(f.listed.Load()) - 1 }

// milliseconds is the unit of all latencies.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
