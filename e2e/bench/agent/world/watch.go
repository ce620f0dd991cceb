// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package world

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

// ArrivalTimeout is how long a change may take to arrive; if it takes longer, the run fails.
const ArrivalTimeout = time.Minute

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

// Observer records when a member's watches return what is expected: an address in a mirrored slice, or the key of a Ready
// import, a Ready export, a mirrored slice with all endpoints, or one with none that is ready. The watches are an administrator's, the same for agents and baseline.
type Observer struct {
	mu       sync.Mutex
	expected map[string]*Change
	series   map[any][]*Change // those that have not arrived, in their order
	arrived  []*Change
}

// ImportKey is the key of a Ready import.
func ImportKey(name string) string { return "import of " + name }

func exportKey(name string) string { return "export of " + name }
func sliceKey(name string) string  { return "slice of " + name }

// GoneKey is the key of a mirrored slice without a ready endpoint.
func GoneKey(name string) string { return "end of " + name }

// Change is one of a series, usually of one slice. It has also arrived if a later one of its series has, so that an agent
// has no advantage from being late.
type Change struct {
	series     any
	key        string // the address or the name
	mu         *sync.Mutex
	sent, seen time.Time
	done       chan struct{} // closed when it was seen
}

// Observe returns when its watches of the member are open, until stop, which is never nil.
func Observe(ctx context.Context, m *Member) (o *Observer, stop func(), err error) {
	o = newObserver()
	ctx, stop = context.WithCancel(ctx)
	err = watchObjects(ctx, m.Admin, &discoveryv1.EndpointSliceList{}, Namespace, func(object client.Object) {
		now, slice := time.Now(), object.(*discoveryv1.EndpointSlice)
		if slice.Labels[discoveryv1.LabelManagedBy] != clusterset.ManagedBy {
			return
		}
		for _, e := range slice.Endpoints {
			o.see(e.Addresses[0], now)
		}
		complete := perSlice
		if slice.Labels[clusterset.LabelGateway] != "" {
			complete = GatewayPods
		}
		if len(slice.Endpoints) == complete {
			o.see(sliceKey(slice.Labels[mcsv1beta1.LabelServiceName]), now)
		}
		if !slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready }) {
			o.see(GoneKey(slice.Labels[mcsv1beta1.LabelServiceName]), now)
		}
	})
	if err != nil {
		return nil, stop, err
	}
	err = watchObjects(ctx, m.Admin, &mcsv1beta1.ServiceImportList{}, Namespace, func(object client.Object) {
		now, i := time.Now(), object.(*mcsv1beta1.ServiceImport)
		complete := len(i.Spec.IPs) > 0 || i.Spec.Type == mcsv1beta1.Headless // with the addresses that it needs
		if complete && meta.IsStatusConditionTrue(i.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)) {
			o.see(ImportKey(i.Name), now)
		}
	})
	if err != nil {
		return nil, stop, err
	}
	return o, stop, watchObjects(ctx, m.Admin, &mcsv1beta1.ServiceExportList{}, Namespace, func(object client.Object) {
		now, export := time.Now(), object.(*mcsv1beta1.ServiceExport)
		if meta.IsStatusConditionTrue(export.Status.Conditions, string(mcsv1beta1.ServiceExportConditionReady)) {
			o.see(exportKey(export.Name), now)
		}
	})
}

func newObserver() *Observer {
	return &Observer{expected: map[string]*Change{}, series: map[any][]*Change{}}
}

// Expect is called before a change of a series is written.
func (o *Observer) Expect(series any, key string) *Change {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := &Change{series: series, key: key, mu: &o.mu, done: make(chan struct{})}
	o.expected[key] = c
	o.series[series] = append(o.series[series], c)
	return c
}

// WasSent is called with the time at which an API server has accepted the change.
func (c *Change) WasSent(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = at
}

func (o *Observer) see(key string, at time.Time) {
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

// Await returns when a change that was sent has arrived, with its latency in milliseconds: 0 if a watch returned it before
// the API server's answer.
func (o *Observer) Await(ctx context.Context, c *Change) (float64, error) {
	err := awaitChanges(ctx, ArrivalTimeout, c)
	o.mu.Lock()
	defer o.mu.Unlock()
	return c.Latency(), err
}

// LatencyOf makes a change of a series, and returns its latency in milliseconds once it has arrived.
func (o *Observer) LatencyOf(ctx context.Context, series any, key string, change func() error) (float64, error) {
	expected := o.Expect(series, key)
	err := change()
	expected.WasSent(time.Now())
	if err != nil {
		return 0, err
	}
	return o.Await(ctx, expected)
}

// AwaitAll returns all changes that were expected, once all have arrived.
func (o *Observer) AwaitAll(ctx context.Context, within time.Duration) ([]*Change, error) {
	o.mu.Lock()
	all := slices.Clone(o.arrived)
	for _, some := range o.series {
		all = append(all, some...)
	}
	o.mu.Unlock()
	return all, awaitChanges(ctx, within, all...)
}

func awaitChanges(ctx context.Context, within time.Duration, all ...*Change) error {
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

// Latency is in milliseconds.
func (c *Change) Latency() float64 {
	return max(0, float64(c.seen.Sub(c.sent))/float64(time.Millisecond))
}

// ExportAll exports services of the first member at once, and returns how many per second become complete in all members: a
// Ready import with a mirrored slice in each, and a Ready export in the first.
func ExportAll(ctx context.Context, w *World, services []*TestService) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // stops all observers
	observers := make([]*Observer, len(w.Members))
	for i, m := range w.Members {
		var err error
		if observers[i], _, err = Observe(ctx, m); err != nil {
			return 0, err
		}
		observers[i].ExpectImports(services)
	}
	for _, s := range services {
		observers[0].Expect(exportKey(s.Export.Name), exportKey(s.Export.Name))
	}
	began := time.Now()
	if err := Each(ctx, SetupWidth, services, func(ctx context.Context, s *TestService) error {
		return w.Members[0].Admin.Create(ctx, s.Export.DeepCopy())
	}); err != nil {
		return 0, err
	}
	ended := began
	for i, o := range observers {
		all, err := o.AwaitAll(ctx, RoundTimeout)
		if err != nil {
			return 0, fmt.Errorf("cluster %s: %w", w.Members[i].ID, err)
		}
		for _, c := range all {
			if c.seen.After(ended) {
				ended = c.seen
			}
		}
	}
	return float64(len(services)) / ended.Sub(began).Seconds(), nil
}

// ExpectImports expects the imports and the mirrored slices of services. Each is a series of its own.
func (o *Observer) ExpectImports(services []*TestService) {
	for _, s := range services {
		o.Expect(ImportKey(s.Service.Name), ImportKey(s.Service.Name))
		o.Expect(sliceKey(s.Service.Name), sliceKey(s.Service.Name))
	}
}
