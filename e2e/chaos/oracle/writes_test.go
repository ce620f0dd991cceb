// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestFewWrites: an object is not written more often than the changes of its service explain.
func TestFewWrites(t *testing.T) {
	t.Parallel()
	export := func() metav1.Object { return good().Clusters[0].Exports[0].DeepCopy() }
	record := func() metav1.Object {
		return &hubv1alpha1.PublishedEndpoints{
			ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: "web-1"},
			Spec:       hubv1alpha1.PublishedEndpointsSpec{Namespace: "shop", Service: "web-service"},
		}
	}
	edited := source(corev1.ServicePort{Name: "http", Port: 82})
	other := Key{Namespace: "shop", Name: "other"}
	const exported = "*v1beta1.ServiceExport shop/web-service"
	often := func(cluster, object string, times int) []string {
		const text = "few writes: shop/web-service in %s: %[1]s %s was written %d times within a minute, and the service was changed 0 times"
		return []string{fmt.Sprintf(text, cluster, object, times)}
	}
	for name, tc := range map[string]struct {
		object  func() metav1.Object
		cluster string
		times   int
		step    time.Duration
		acts    []Act
		events  []Event
		want    []string
	}{
		"a few times":         {object: export, cluster: "a", times: 6},
		"too often":           {object: export, cluster: "a", times: 7, want: often("a", exported, 7)},
		"once in 11 seconds":  {object: export, cluster: "a", times: 20, step: 11 * time.Second},
		"once in 9 seconds":   {object: export, cluster: "a", times: 20, step: 9 * time.Second, want: often("a", exported, 7)},
		"its service changed": {object: export, cluster: "a", times: 10, acts: []Act{{"b", web, Source}}},
		"and was seen to change": {
			object: export, cluster: "a", times: 14, acts: []Act{{"b", web, Source}}, events: []Event{added("b", &edited)},
		},
		"another service changed": {
			object: export, cluster: "a", times: 10, acts: []Act{{"b", other, Source}}, want: often("a", exported, 10),
		},
		"a member is silent":  {object: export, cluster: "a", times: 10, acts: []Act{{"b", Key{}, Silence}}},
		"a record on the hub": {object: record, cluster: "hub", times: 7, want: often("hub", "*v1alpha1.PublishedEndpoints member-a/web-1", 7)},
		"an import": {
			object: func() metav1.Object { return good().Clusters[2].Imports[0].DeepCopy() }, cluster: "c", times: 7,
			want: often("c", "*v1beta1.ServiceImport shop/web-service", 7),
		},
		"a mirrored slice": {
			object: func() metav1.Object { return new(mirrored("a", "10.1.0.1", "http")) }, cluster: "c", times: 7,
			want: often("c", "*v1.EndpointSlice shop/derived-435094621-a-1", 7),
		},
		"a derived Service": {
			object: func() metav1.Object { return new(derived("10.3.0.99")) }, cluster: "c", times: 7,
			want: often("c", "*v1.Service shop/derived-435094621", 7),
		},
		"by hand": {
			object: func() metav1.Object { return new(derived("10.3.0.99")) }, cluster: "c", times: 20, acts: []Act{{"c", web, Hand}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := seen(good())
			for _, act := range tc.acts {
				h.Do(act)
			}
			for _, e := range tc.events {
				h.Saw(e)
			}
			for i := range tc.times {
				o := tc.object()
				o.SetResourceVersion(strconv.Itoa(i + 1))
				e := Event{Cluster: tc.cluster, Object: o, At: start.Add(time.Duration(i) * tc.step)}
				h.Saw(e)
				h.Saw(e) // a list shows the same version again
			}
			var got []string
			for _, f := range h.Begin(good()) {
				if f.Rule == FewWrites {
					got = append(got, f.String())
				}
			}
			lab.Equal(t, "findings", tc.want, got)
			if again := h.Begin(good()); len(again) > 0 {
				t.Errorf("the next epoch begins with %v", again)
			}
		})
	}
}

// TestAged: an export keeps its record as long as its ServiceExport exists.
//
// spec: E6, R8
func TestAged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		act    Act
		change func(*World)
		want   []Rule
	}{
		"nothing":                  {Act{}, func(*World) {}, nil},
		"another record":           {Act{}, func(w *World) { w.Records[0].UID = "another" }, []Rule{AgeKept}},
		"though something else is": {Act{"a", web, Source}, func(w *World) { w.Records[0].UID = "another" }, []Rule{AgeKept}},
		"the hub has lost it":      {Act{"a", Key{}, Loss}, func(w *World) { w.Records[0].UID = "another" }, nil},
		"another's are lost":       {Act{"b", Key{}, Loss}, func(w *World) { w.Records[0].UID = "another" }, []Rule{AgeKept}},
		"another export": {Act{}, func(w *World) {
			w.Records[0].UID, w.Clusters[0].Exports[0].UID = "another", "another"
		}, nil},
		"inactive": {Act{}, func(w *World) { w.Records[0].Spec.Inactive = true }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := seen(good())
			h.Do(tc.act)
			w := good()
			tc.change(&w)
			lab.Equal(t, "findings", tc.want, rulesOf(h.Begin(w)))
		})
	}
}

// TestWithheldPortReturns: an endpoint of a silent member does not come back to a port that it has left.
//
// spec: D9
func TestWithheldPortReturns(t *testing.T) {
	t.Parallel()
	both := mirrored("a", "10.1.0.1", "admin", "http")
	moved := mirrored("a", "10.1.0.1", "admin")
	moved.Name += "2"
	for name, tc := range map[string]struct {
		silent string
		act    Act
		event  Event
		want   []Rule
	}{
		"a port comes back":                {"a", Act{}, added("c", &both), []Rule{Withheld}},
		"in another slice":                 {"a", Act{}, added("c", &moved), nil},
		"the member comes back":            {"a", Act{"a", Key{}, Silence}, added("c", &both), nil},
		"another goes down, a last resort": {"a", Act{"b", Key{}, Silence}, added("c", &both), nil},
		"another is silent":                {"b", Act{}, added("c", &both), nil},
		"something was done":               {"a", Act{"b", web, Source}, added("c", &both), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := good()
			w.Clusters[2].Slices[0] = mirrored("a", "10.1.0.1", "admin")
			for i := range w.Clusters {
				w.Clusters[i].Silent = w.Clusters[i].ID == tc.silent
			}
			h := seen(w)
			h.Do(tc.act)
			h.Saw(tc.event)
			lab.Equal(t, "findings", tc.want, rulesOf(h.Begin(w)))
		})
	}
}
