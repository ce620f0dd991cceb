// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
)

// TestInOrder: what is named first goes before a backlog that waited already, and a live change before all of it.
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
		t.Fatalf("%d services were looked at, want %d", len(at), len(keys)+1)
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

// TestInOrderFew: of few services none gets lost.
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

// TestHear: each controller looks at what changes what it reads, and at nothing else.
func TestHear(t *testing.T) {
	t.Parallel()
	web := clusterset.ServiceKey{Namespace: "shop", Name: "web"}
	hears := map[string]Hear{
		"own records": OfRecords("own"),
		"exports":     NewPacer("own", clock.RealClock{}).OfExports,
		"others":      NewPacer("own", clock.RealClock{}).OfOthers,
	}
	cases := map[string]struct {
		news hub.Event
		want []string
	}{
		"an own service":      {hub.Event{Key: web, Cluster: "own"}, []string{"exports", "others", "own records"}},
		"own endpoints":       {hub.Event{Key: web, Cluster: "own", Endpoints: true}, []string{"own records"}},
		"another's service":   {hub.Event{Key: web, Cluster: "b"}, []string{"exports", "others"}},
		"another's endpoints": {hub.Event{Key: web, Cluster: "b", Endpoints: true}, []string{"others"}},
		"a member's state":    {hub.Event{Key: web, Backlog: true}, []string{"exports", "others"}},
	}
	for name, c := range cases {
		var got []string
		for who, hear := range hears {
			hear(c.news, func() { got = append(got, who) })
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: looked at by %v, want %v", name, got, c.want)
		}
	}
}
