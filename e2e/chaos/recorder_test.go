// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
)

// recorder feeds the checker's history with what watches of all members show.
type recorder struct {
	mu      sync.Mutex
	history *oracle.History
}

func newRecorder(t *testing.T, members []*member) *recorder {
	t.Helper()
	r := &recorder{history: oracle.NewHistory()}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	for _, m := range members {
		watches, err := cache.New(m.cluster.Config(), cache.Options{Scheme: schemeOf(t)})
		must(t, err)
		for _, kind := range []client.Object{&corev1.Service{}, &discoveryv1.EndpointSlice{}, &mcsv1beta1.ServiceExport{}, &mcsv1beta1.ServiceImport{}} {
			informer, err := watches.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
			must(t, err)
			_, err = informer.AddEventHandler(r.handler(m.id))
			must(t, err)
		}
		go func() { _ = watches.Start(ctx) }() // it never returns an error
		if !watches.WaitForCacheSync(t.Context()) {
			t.Fatalf("the watches of %s did not begin", m.id)
		}
	}
	return r
}

func (r *recorder) handler(cluster string) toolscache.ResourceEventHandlerFuncs {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { r.saw(oracle.Event{Cluster: cluster, Object: o.(metav1.Object)}) },
		UpdateFunc: func(_, o any) { r.saw(oracle.Event{Cluster: cluster, Object: o.(metav1.Object)}) },
		DeleteFunc: func(o any) {
			if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			r.saw(oracle.Event{Cluster: cluster, Object: o.(metav1.Object), Gone: true})
		},
	}
}

func (r *recorder) saw(e oracle.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Saw(e)
}

// will tells the checker that something is about to be done.
func (r *recorder) will(what oracle.What, cluster string, key oracle.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Do(oracle.Act{Cluster: cluster, Key: key, What: what})
}

// offers tells the checker what is about to be written to a cluster: exports and slices.
func (r *recorder) offers(cluster string, objects ...metav1.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range objects {
		r.history.Offers(cluster, o)
	}
}

func (r *recorder) behind(w oracle.World) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history.Behind(w)
}

func (r *recorder) begin(w oracle.World) []oracle.Finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history.Begin(w)
}
