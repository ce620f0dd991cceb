// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// recorder feeds the checker's history with what watches of all members and of the hub show.
type recorder struct {
	mu      sync.Mutex
	history *oracle.History
}

// newRecorder watches the members and the hub until the test ends.
func newRecorder(t *testing.T, hub *lab.Cluster, members []*member) *recorder {
	t.Helper()
	r := &recorder{history: oracle.NewHistory()}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	scheme, err := membership.Scheme()
	lab.Must(t, err)
	follow := func(cluster string, of *lab.Cluster, lists ...client.ObjectList) {
		for _, list := range lists {
			f := &follower{r, cluster, list, func() (client.WithWatch, error) { return of.Client(scheme) }, map[string]metav1.Object{}}
			go f.run(ctx)
		}
	}
	for _, m := range members {
		follow(m.id, m.cluster, &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}, &mcsv1beta1.ServiceExportList{}, &mcsv1beta1.ServiceImportList{})
	}
	follow("hub", hub, &hubv1alpha1.PublishedServiceList{}, &hubv1alpha1.PublishedEndpointsList{})
	return r
}

// follower lists a kind and watches it, again and again. It is not client-go's: that is what the product uses, and it has to notice
// an API server that goes back to an older state.
type follower struct {
	recorder *recorder
	cluster  string
	list     client.ObjectList
	// connect returns a client that trusts the certificate of today.
	connect func() (client.WithWatch, error)
	known   map[string]metav1.Object
}

// run follows the kind until the context ends. An API server that cannot be reached shows nothing.
func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		c, err := f.connect()
		for err == nil && ctx.Err() == nil {
			err = f.follow(ctx, c)
		}
		pause(ctx, 200*time.Millisecond)
	}
}

// follow lists and watches once.
func (f *follower) follow(ctx context.Context, c client.WithWatch) error {
	list := f.list.DeepCopyObject().(client.ObjectList)
	if err := c.List(ctx, list); err != nil {
		return err
	}
	gone := maps.Clone(f.known)
	err := apimeta.EachListItem(list, func(o runtime.Object) error {
		object := o.(metav1.Object)
		delete(gone, object.GetNamespace()+"/"+object.GetName())
		f.saw(object, false)
		return nil
	})
	for _, object := range gone {
		f.saw(object, true)
	}
	if err != nil {
		return err
	}
	watcher, err := c.Watch(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), TimeoutSeconds: new(int64(60))}})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		f.saw(event.Object.(metav1.Object), event.Type == watch.Deleted)
	}
	return nil
}

func (f *follower) saw(object metav1.Object, gone bool) {
	name := object.GetNamespace() + "/" + object.GetName()
	f.known[name] = object
	if gone {
		delete(f.known, name)
	}
	f.recorder.mu.Lock()
	defer f.recorder.mu.Unlock()
	f.recorder.history.Saw(oracle.Event{Cluster: f.cluster, Object: object, Gone: gone, At: time.Now()})
}

// will records an act before it is done.
func (r *recorder) will(what oracle.What, cluster string, key oracle.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Do(oracle.Act{Cluster: cluster, Key: key, What: what})
}

// markStable records that a service is exported and imported as it must be, and that nothing more is done to it in a member.
func (r *recorder) markStable(cluster string, key oracle.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.MarkStable(cluster, key)
}

// offers records what is about to be written to a cluster: exports and slices.
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
