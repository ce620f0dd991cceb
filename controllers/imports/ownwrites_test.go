// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/queue"
	"github.com/tombolo-mcs/tombolo/e2e/framework/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestOwnWrites: an event enqueues a service unless it reports a write of its last reconciliation.
func TestOwnWrites(t *testing.T) {
	t.Parallel()
	web := clusterset.ServiceKey{Namespace: "shop", Name: "web"}
	version := func(service, version string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-1", ResourceVersion: version,
			Labels: map[string]string{discoveryv1.LabelManagedBy: clusterset.ManagedBy, mcsv1beta1.LabelServiceName: service},
		}}
	}
	type step = func(w *ownWrites, receive func(old, updated *discoveryv1.EndpointSlice))
	begin := func(w *ownWrites, _ func(_, _ *discoveryv1.EndpointSlice)) { w.begin(web) }
	end := func(w *ownWrites, _ func(_, _ *discoveryv1.EndpointSlice)) { w.end(web) }
	write := func(w *ownWrites, _ func(_, _ *discoveryv1.EndpointSlice)) {
		w.add(web, []*discoveryv1.EndpointSlice{version("web", "2")})
	}
	own := func(_ *ownWrites, receive func(_, _ *discoveryv1.EndpointSlice)) {
		receive(version("web", "1"), version("web", "2"))
	}
	foreign := func(_ *ownWrites, receive func(_, _ *discoveryv1.EndpointSlice)) {
		receive(version("web", "2"), version("web", "3"))
	}
	moved := func(_ *ownWrites, receive func(_, _ *discoveryv1.EndpointSlice)) {
		receive(version("api", "1"), version("web", "2"))
	}
	for name, test := range map[string]struct {
		steps    []step
		enqueued bool
		left     int
	}{
		"a write":                      {steps: []step{begin, write, end, own}},
		"an event before the response": {steps: []step{begin, own, write, end}},
		"no event yet":                 {steps: []step{begin, write, end}, left: 1},
		"another reconciliation before the event":  {steps: []step{begin, write, end, begin, own, end}, enqueued: true},
		"another one has ended before the event":   {steps: []step{begin, write, end, begin, end, own}, enqueued: true},
		"a change of another":                      {steps: []step{begin, write, end, own, foreign}, enqueued: true},
		"a change of another instead of the event": {steps: []step{begin, write, end, foreign}, enqueued: true, left: 1},
		"a change of another meanwhile":            {steps: []step{begin, write, foreign, end, own}, enqueued: true},
		"it waits for the end":                     {steps: []step{begin, foreign}, left: 1},
		"a slice of another service":               {steps: []step{begin, write, end, moved}, enqueued: true, left: 1},
		"before the first reconciliation":          {steps: []step{own}, enqueued: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &ownWrites{}
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			handler := w.without(queue.Typed[*discoveryv1.EndpointSlice](caches.MirroredService))
			for _, step := range test.steps {
				step(w, func(old, updated *discoveryv1.EndpointSlice) {
					handler.Update(t.Context(), event.TypedUpdateEvent[*discoveryv1.EndpointSlice]{ObjectOld: old, ObjectNew: updated}, q)
				})
			}
			check.Equal(t, "enqueued", test.enqueued, q.Len() > 0)
			check.Equal(t, "services with writes", test.left, len(w.services))
		})
	}
}
