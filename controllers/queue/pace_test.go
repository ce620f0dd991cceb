// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var (
	start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	web   = clusterset.ServiceKey{Namespace: "shop", Name: "web"}
)

// If a member changes a service all the time, the service is reconciled at a limited rate, and each change is followed by a
// reconciliation.
func TestPace(t *testing.T) {
	t.Parallel()
	const changes, apart = 2000, time.Millisecond
	c := clocktesting.NewFakeClock(start)
	p := NewPacer("own", c)
	made, seen, reconciles := 0, 0, 0
	reconcile := func() { seen, reconciles = made, reconciles+1 }
	for range changes {
		made++
		p.pace(bucketKey{"a", web}, reconcile)
		if made <= changeBurst && seen != made {
			t.Fatalf("no reconcile when change %d is made", made)
		}
		c.Step(apart)
	}
	c.Step(time.Second / changesPerSecond)
	if seen != made {
		t.Errorf("of %d changes the last reconcile saw %d", made, seen)
	}
	if want := changeBurst + int(changes*apart/time.Second)*changesPerSecond; reconciles < want-1 || reconciles > want+1 {
		t.Errorf("%d changes in 2 s are reconciled %d times, want about %d", changes, reconciles, want)
	}

	for name, other := range map[string]bucketKey{
		"another service of it":         {"a", clusterset.ServiceKey{Namespace: "shop", Name: "api"}},
		"another member's part therein": {"b", web},
	} {
		before := reconciles
		p.pace(other, reconcile)
		if reconciles != before+1 {
			t.Errorf("no reconcile when %s changes", name)
		}
	}
	c.Step(time.Minute)
	before := reconciles
	p.pace(bucketKey{"a", web}, reconcile)
	if reconciles != before+1 {
		t.Error("a minute later, no reconcile when a change is made")
	}
}

// Watch events of writes for a member's changes cause no additional reconciliations.
//
// spec: D9
func TestPacedEchoes(t *testing.T) {
	t.Parallel()
	const changes, apart = 2000, time.Millisecond
	c := clocktesting.NewFakeClock(start)
	p := NewPacer("own", c)
	echo := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Labels: map[string]string{
		discoveryv1.LabelManagedBy: clusterset.ManagedBy, mcsv1beta1.LabelServiceName: web.Name, mcsv1beta1.LabelSourceCluster: "a",
	}}}
	again := echo.DeepCopy()
	again.ResourceVersion = "2"
	outputs := Paced[*discoveryv1.EndpointSlice](p, caches.MirroredService)
	made, written, reconciles, toCome := 0, 0, 0, false
	var q immediateQueue
	q.reconcile = func(r reconcile.Request) {
		if r.NamespacedName != web {
			t.Errorf("reconciled %s", r)
		}
		reconciles++
		toCome = toCome || written < made
		written = made
	}
	for range changes {
		made++
		p.pace(bucketKey{"a", web}, func() { Enqueue(q, 0, web) })
		c.Step(apart)
		if toCome { // the watch event of the write
			toCome = false
			outputs.Update(t.Context(), event.TypedUpdateEvent[*discoveryv1.EndpointSlice]{ObjectOld: echo, ObjectNew: again}, q)
		}
	}
	c.Step(time.Second / changesPerSecond)
	if written != made {
		t.Errorf("of %d changes %d are written", made, written)
	}
	if most := changeBurst + int((changes*apart+time.Second/changesPerSecond)/time.Second)*changesPerSecond + 1; reconciles > most {
		t.Errorf("%d changes in 2 s are reconciled %d times, more than %d", changes, reconciles, most)
	}
	moved := again.DeepCopy()
	moved.Labels[mcsv1beta1.LabelServiceName] = "api"
	disowned := again.DeepCopy()
	delete(disowned.Labels, discoveryv1.LabelManagedBy)
	var seen []string
	c.Step(time.Minute)
	q.reconcile = func(r reconcile.Request) { seen = append(seen, r.Name) }
	outputs.Update(t.Context(), event.TypedUpdateEvent[*discoveryv1.EndpointSlice]{ObjectOld: echo, ObjectNew: moved}, q)
	outputs.Update(t.Context(), event.TypedUpdateEvent[*discoveryv1.EndpointSlice]{ObjectOld: echo, ObjectNew: disowned}, q)
	outputs.Delete(t.Context(), event.TypedDeleteEvent[*discoveryv1.EndpointSlice]{Object: disowned}, q)
	outputs.Delete(t.Context(), event.TypedDeleteEvent[*discoveryv1.EndpointSlice]{Object: moved}, q)
	outputs.Create(t.Context(), event.TypedCreateEvent[*discoveryv1.EndpointSlice]{Object: echo}, q)
	check.Equal(t, "reconciled", []string{"web", "api", "web", "api", "web"}, seen)
}

// immediateQueue is a queue that is processed at once.
type immediateQueue struct {
	queue
	reconcile func(reconcile.Request)
}

func (l immediateQueue) Add(r reconcile.Request) { l.reconcile(r) }

// Buckets of many services are removed again.
func TestPacerRemovesBuckets(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(start)
	p := NewPacer("own", c)
	most := 0
	for i := range 100 * minCleanupSize {
		p.pace(bucketKey{"a", clusterset.ServiceKey{Namespace: "shop", Name: fmt.Sprint(i)}}, func() {})
		c.Step(time.Millisecond)
		most = max(most, len(p.buckets))
	}
	if most > 2*minCleanupSize {
		t.Errorf("there were %d buckets at a time", most)
	}
}
