// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestInOrder: the first keys precede a backlog that is queued already, and a live change precedes both.
func TestInOrder(t *testing.T) {
	t.Parallel()
	q := priorityqueue.New[reconcile.Request](t.Name())
	defer q.ShutDown()
	var keys []clusterset.ServiceKey
	for i := range 3000 {
		keys = append(keys, clusterset.ServiceKey{Namespace: "shop", Name: fmt.Sprint(i)})
	}
	Enqueue(q, handler.LowPriority, append([]clusterset.ServiceKey{{Name: "other"}}, keys[2000:]...)...)
	enqueueInOrder(q, keys)
	Enqueue(q, 0, keys[2999])
	var order []string
	for range len(keys) + 1 {
		item, _ := q.Get()
		order = append(order, item.Name)
		q.Done(item)
	}
	at := map[string]int{}
	for i, name := range order {
		at[name] = i
	}
	if len(at) != len(keys)+1 {
		t.Fatalf("%d services were reconciled, want %d", len(at), len(keys)+1)
	}
	if at["2999"] != 0 {
		t.Errorf("the live change comes after %d others", at["2999"])
	}
	for name, most := range map[string]int{"0": 1, "63": 64, "64": 65, "1087": 1088} {
		if at[name] > most {
			t.Errorf("service %s comes after %d others, want %d at most", name, at[name], most)
		}
	}
	if at["other"] > at["2000"] || at["2000"] > at["1088"] {
		t.Errorf("what waited already comes after what does not go before it: other %d, 2000 %d, 1088 %d", at["other"], at["2000"], at["1088"])
	}
}

// TestInOrderFew: no service of a short list is lost.
func TestInOrderFew(t *testing.T) {
	t.Parallel()
	q := priorityqueue.New[reconcile.Request](t.Name())
	defer q.ShutDown()
	enqueueInOrder(q, nil)
	enqueueInOrder(q, []clusterset.ServiceKey{web})
	if item, _ := q.Get(); item.NamespacedName != web {
		t.Errorf("got %s", item)
	}
	if q.Len() != 0 {
		t.Errorf("%d are left", q.Len())
	}
}

// TestFilters: each filter drops the events of data that its controller does not read.
func TestFilters(t *testing.T) {
	t.Parallel()
	web := clusterset.ServiceKey{Namespace: "shop", Name: "web"}
	filters := map[string]Filter{
		"local records": RecordsOf("own"),
		"exports":       NewPacer("own", clock.RealClock{}).Exports,
		"remote":        NewPacer("own", clock.RealClock{}).Remote,
	}
	cases := map[string]struct {
		event hub.Event
		want  []string
	}{
		"an own service":      {hub.Event{Key: web, Cluster: "own"}, []string{"exports", "local records", "remote"}},
		"own endpoints":       {hub.Event{Key: web, Cluster: "own", Endpoints: true}, []string{"local records"}},
		"another's service":   {hub.Event{Key: web, Cluster: "b"}, []string{"exports", "remote"}},
		"another's endpoints": {hub.Event{Key: web, Cluster: "b", Endpoints: true}, []string{"remote"}},
		"a member's state":    {hub.Event{Key: web, Backlog: true}, []string{"exports", "remote"}},
	}
	for name, c := range cases {
		var got []string
		for name, filter := range filters {
			filter(c.event, func() { got = append(got, name) })
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: passed by %v, want %v", name, got, c.want)
		}
	}
}

// TestOfExports: an object of a service without a ServiceExport enqueues nothing. If the exports cannot be read, it does.
func TestOfExports(t *testing.T) {
	t.Parallel()
	q := priorityqueue.New[reconcile.Request](t.Name())
	defer q.ShutDown()
	h := OfExports[*corev1.Service](func(_ context.Context, key clusterset.ServiceKey) (bool, error) {
		if key.Name == "unknown" {
			return false, errors.New("the cache has ended")
		}
		return key.Name == "exported", nil
	}, SameName)
	for _, name := range []string{"exported", "private", "unknown"} {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		h.Create(t.Context(), event.TypedCreateEvent[*corev1.Service]{Object: service}, q)
	}
	var got []string
	for range 2 {
		item, _ := q.Get()
		got = append(got, item.Name)
		q.Done(item)
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"exported", "unknown"}) || q.Len() > 0 {
		t.Errorf("%v are enqueued, and %d more", got, q.Len())
	}
}

// TestFromHubAtStart: all services are enqueued once, when the hub was listed or is unreachable, also for a controller that starts later.
func TestFromHubAtStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		store := hub.NewStore("own", clusterset.AddressRanges{})
		start := func() *[]string {
			var enqueued []string
			q := immediateQueue{reconcile: func(r reconcile.Request) { enqueued = append(enqueued, r.Name) }}
			all := func(context.Context) ([]clusterset.ServiceKey, error) { return []clusterset.ServiceKey{web}, nil }
			check.Must(t, FromHub(store, RecordsOf("own"), all).Start(ctx, q))
			synctest.Wait()
			return &enqueued
		}
		first := start()
		check.Equal(t, "enqueued before the hub was read", []string(nil), *first)
		store.MarkUnreachable()
		synctest.Wait()
		check.Equal(t, "enqueued then", []string{"web"}, *first)
		check.Equal(t, "enqueued by a controller that starts later", []string{"web"}, *start())
	})
}
