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
	"github.com/tombolo-mcs/tombolo/internal/check"
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
	atGateway := func(version *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
		version.Labels[clusterset.LabelGateway] = "true"
		return version
	}
	type receiver = func(old, updated *discoveryv1.EndpointSlice)
	type step = func(*ownWrites, receiver)
	begin := func(w *ownWrites, _ receiver) { w.begin(web) }
	end := func(w *ownWrites, _ receiver) { w.end(web) }
	writes := func(w *ownWrites, _ receiver) { w.add(web, "2") }
	receives := func(old, updated *discoveryv1.EndpointSlice) step {
		return func(_ *ownWrites, receive receiver) { receive(old, updated) }
	}
	own, foreign := receives(version("web", "1"), version("web", "2")), receives(version("web", "2"), version("web", "3"))
	for name, test := range map[string]struct {
		steps    []step
		enqueued bool
		left     int
	}{
		"a write":                      {steps: []step{begin, writes, end, own}},
		"an event before the response": {steps: []step{begin, own, writes, end}},
		"no event yet":                 {steps: []step{begin, writes, end}, left: 1},
		"another reconciliation before the event":  {steps: []step{begin, writes, end, begin, own, end}, enqueued: true},
		"another one has ended before the event":   {steps: []step{begin, writes, end, begin, end, own}, enqueued: true},
		"a change of another":                      {steps: []step{begin, writes, end, own, foreign}, enqueued: true},
		"a change of another instead of the event": {steps: []step{begin, writes, end, foreign}, enqueued: true, left: 1},
		"a change of another meanwhile":            {steps: []step{begin, writes, foreign, end, own}, enqueued: true},
		"the event waits for the end":              {steps: []step{begin, foreign}, left: 1},
		"a slice of another service":               {steps: []step{begin, writes, end, receives(version("api", "1"), version("web", "2"))}, enqueued: true, left: 1},
		"a slice of gateways": {
			steps: []step{begin, writes, end, receives(atGateway(version("web", "1")), atGateway(version("web", "2")))}, enqueued: true, left: 1,
		},
		"a resync":                        {steps: []step{begin, writes, end, receives(version("web", "2"), version("web", "2"))}, enqueued: true, left: 1},
		"before the first reconciliation": {steps: []step{own}, enqueued: true},
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
