// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// arrivalTimeout is how long a change may take to arrive; if it takes longer, the run fails.
const arrivalTimeout = time.Minute

// watchObjects watches a kind until ctx ends, and calls handle, never twice at a time, with each object that exists, is
// created or updated. It returns when handle was called for all that exist.
func watchObjects(ctx context.Context, c client.WithWatch, list client.ObjectList, namespace string, handle func(client.Object)) error {
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			into := list.DeepCopyObject().(client.ObjectList)
			return into, c.List(ctx, into, &client.ListOptions{Namespace: namespace, Raw: &o})
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list, &client.ListOptions{Namespace: namespace, Raw: &o})
		},
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(source, c),
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { handle(o.(client.Object)) },
			UpdateFunc: func(_, o any) { handle(o.(client.Object)) },
		},
	})
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return ctx.Err()
	}
	return nil
}

// observer records when a member's watches return what is expected: an address in a mirrored slice, or the key of a Ready
// import, a Ready export, a mirrored slice with all endpoints, or one with none that is ready. The watches are an administrator's, the same for agents and baseline.
type observer struct {
	mu       sync.Mutex
	expected map[string]*change
	series   map[any][]*change // those that have not arrived, in their order
	arrived  []*change
}

func importKey(name string) string { return "import of " + name }
func exportKey(name string) string { return "export of " + name }
func sliceKey(name string) string  { return "slice of " + name }
func goneKey(name string) string   { return "end of " + name }

// change is one of a series, usually of one slice. It has also arrived if a later one of its series has, so that an agent
// has no advantage from being late.
type change struct {
	series     any
	key        string // the address or the name
	mu         *sync.Mutex
	sent, seen time.Time
	done       chan struct{} // closed when it was seen
}

// observe returns when its watches of the member are open, until stop, which is never nil.
func observe(ctx context.Context, m *member) (o *observer, stop func(), err error) {
	o = newObserver()
	ctx, stop = context.WithCancel(ctx)
	err = watchObjects(ctx, m.admin, &discoveryv1.EndpointSliceList{}, namespace, func(object client.Object) {
		now, slice := time.Now(), object.(*discoveryv1.EndpointSlice)
		if slice.Labels[discoveryv1.LabelManagedBy] != clusterset.ManagedBy {
			return
		}
		for _, e := range slice.Endpoints {
			o.see(e.Addresses[0], now)
		}
		complete := perSlice
		if slice.Labels[clusterset.LabelGateway] != "" {
			complete = gatewayPods
		}
		if len(slice.Endpoints) == complete {
			o.see(sliceKey(slice.Labels[mcsv1beta1.LabelServiceName]), now)
		}
		if !slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready }) {
			o.see(goneKey(slice.Labels[mcsv1beta1.LabelServiceName]), now)
		}
	})
	if err != nil {
		return nil, stop, err
	}
	err = watchObjects(ctx, m.admin, &mcsv1beta1.ServiceImportList{}, namespace, func(object client.Object) {
		now, i := time.Now(), object.(*mcsv1beta1.ServiceImport)
		complete := len(i.Spec.IPs) > 0 || i.Spec.Type == mcsv1beta1.Headless // with the addresses that it needs
		if complete && meta.IsStatusConditionTrue(i.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)) {
			o.see(importKey(i.Name), now)
		}
	})
	if err != nil {
		return nil, stop, err
	}
	return o, stop, watchObjects(ctx, m.admin, &mcsv1beta1.ServiceExportList{}, namespace, func(object client.Object) {
		now, export := time.Now(), object.(*mcsv1beta1.ServiceExport)
		if meta.IsStatusConditionTrue(export.Status.Conditions, string(mcsv1beta1.ServiceExportConditionReady)) {
			o.see(exportKey(export.Name), now)
		}
	})
}

func newObserver() *observer {
	return &observer{expected: map[string]*change{}, series: map[any][]*change{}}
}

// expect is called before a change of a series is written.
func (o *observer) expect(series any, key string) *change {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := &change{series: series, key: key, mu: &o.mu, done: make(chan struct{})}
	o.expected[key] = c
	o.series[series] = append(o.series[series], c)
	return c
}

// wasSent is called with the time at which an API server has accepted the change.
func (c *change) wasSent(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = at
}

func (o *observer) see(key string, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.expected[key]
	if c == nil {
		return
	}
	all := o.series[c.series]
	n := slices.Index(all, c) + 1
	for _, one := range all[:n] {
		delete(o.expected, one.key)
		one.seen = at
		close(one.done)
	}
	o.arrived, o.series[c.series] = append(o.arrived, all[:n]...), all[n:]
}

// await returns when a change that was sent has arrived, with its latency in milliseconds: 0 if a watch returned it before
// the API server's answer.
func (o *observer) await(ctx context.Context, c *change) (float64, error) {
	err := awaitChanges(ctx, arrivalTimeout, c)
	o.mu.Lock()
	defer o.mu.Unlock()
	return c.latency(), err
}

// latencyOf makes a change of a series, and returns its latency in milliseconds once it has arrived.
func (o *observer) latencyOf(ctx context.Context, series any, key string, change func() error) (float64, error) {
	expected := o.expect(series, key)
	err := change()
	expected.wasSent(time.Now())
	if err != nil {
		return 0, err
	}
	return o.await(ctx, expected)
}

// awaitAll returns all changes that were expected, once all have arrived.
func (o *observer) awaitAll(ctx context.Context, within time.Duration) ([]*change, error) {
	o.mu.Lock()
	all := slices.Clone(o.arrived)
	for _, some := range o.series {
		all = append(all, some...)
	}
	o.mu.Unlock()
	return all, awaitChanges(ctx, within, all...)
}

func awaitChanges(ctx context.Context, within time.Duration, all ...*change) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for i, c := range all {
		select {
		case <-c.done:
		case <-ctx.Done():
			return fmt.Errorf("%s has not arrived within %s, after %d of %d others: %w", c.key, within, i, len(all), ctx.Err())
		}
	}
	return nil
}

// latency is in milliseconds.
func (c *change) latency() float64 {
	return max(0, float64(c.seen.Sub(c.sent))/float64(time.Millisecond))
}

// exportAll exports services of the first member at once, and returns how many per second become complete in all members: a
// Ready import with a mirrored slice in each, and a Ready export in the first.
func exportAll(ctx context.Context, w *world, services []*testService) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // stops all observers
	observers := make([]*observer, len(w.members))
	for i, m := range w.members {
		var err error
		if observers[i], _, err = observe(ctx, m); err != nil {
			return 0, err
		}
		observers[i].expectImports(services)
	}
	for _, s := range services {
		observers[0].expect(exportKey(s.export.Name), exportKey(s.export.Name))
	}
	began := time.Now()
	if err := each(ctx, setupWidth, services, func(ctx context.Context, s *testService) error {
		return w.members[0].admin.Create(ctx, s.export.DeepCopy())
	}); err != nil {
		return 0, err
	}
	ended := began
	for i, o := range observers {
		all, err := o.awaitAll(ctx, roundTimeout)
		if err != nil {
			return 0, fmt.Errorf("cluster %s: %w", w.members[i].id, err)
		}
		for _, c := range all {
			if c.seen.After(ended) {
				ended = c.seen
			}
		}
	}
	return float64(len(services)) / ended.Sub(began).Seconds(), nil
}

// expectImports expects the imports and the mirrored slices of services. Each is a series of its own.
func (o *observer) expectImports(services []*testService) {
	for _, s := range services {
		o.expect(importKey(s.service.Name), importKey(s.service.Name))
		o.expect(sliceKey(s.service.Name), sliceKey(s.service.Name))
	}
}
