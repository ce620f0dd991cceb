// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

func seen(w World) *History {
	h := NewHistory()
	for _, c := range w.Clusters {
		for _, o := range c.objects() {
			h.Saw(added(c.ID, o))
		}
	}
	h.Begin(w)
	return h
}

func added(c string, o metav1.Object) Event   { return Event{Cluster: c, Object: o} }
func deleted(c string, o metav1.Object) Event { return Event{Cluster: c, Object: o, Gone: true} }

func rulesOf(found []Finding) (rules []Rule) {
	for _, f := range found {
		rules = append(rules, f.Rule)
	}
	return rules
}

// TestHistory: what must never happen is found, unless something was done that explains it.
func TestHistory(t *testing.T) {
	t.Parallel()
	elsewhere := derived("10.3.0.98")
	remade := derived("10.3.0.98")
	remade.UID = "another"
	renamed := derived("10.3.0.99")
	_, renamed.Name = names(web.Name)
	shared := imported("10.3.0.99")
	shared.UID = "another"
	edited := source(corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 82})
	ghost := mirrored("b", "10.2.0.7", "http")
	ghost.Name += "2"
	two := mirrored("a", "10.1.0.1", "http")
	two.Endpoints = append(two.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.1.0.2"}})
	offered := sourceSlice("10.1.0.2", "http")
	empty := mirrored("a", "10.1.0.1", "http")
	empty.Endpoints = nil
	owned := good().Clusters[2].Imports[0]
	headless := derived(corev1.ClusterIPNone)
	a, b := Act{"a", web, Source}, Act{"b", web, Source}

	for name, tc := range map[string]struct {
		acts   []Act
		events []Event
		want   []Rule
	}{
		"nothing":                          {},
		"an import goes":                   {nil, []Event{deleted("c", &owned)}, []Rule{ImportKept}},
		"an import is replaced":            {nil, []Event{added("c", &shared)}, []Rule{ImportKept}},
		"an import goes with one exporter": {[]Act{a}, []Event{deleted("c", &owned)}, []Rule{ImportKept}},
		"an import goes with both":         {[]Act{a, b}, []Event{deleted("c", &owned)}, nil},
		"an import goes by hand":           {[]Act{{"c", web, Hand}}, []Event{deleted("c", &owned)}, nil},
		"its ServiceImport alone by hand":  {[]Act{{"c", web, HandImport}}, []Event{deleted("c", &owned)}, nil},
		"and then its derived Service": {
			[]Act{{"c", web, HandImport}}, []Event{deleted("c", &owned), deleted("c", new(derived("10.3.0.99")))}, []Rule{ImportKept},
		},
		"by hand, but elsewhere":                       {[]Act{{"b", web, Hand}}, []Event{deleted("c", &owned)}, []Rule{ImportKept}},
		"a derived Service goes":                       {nil, []Event{deleted("c", new(derived("10.3.0.99")))}, []Rule{ImportKept}},
		"an endpoint goes":                             {nil, []Event{added("c", &empty)}, []Rule{EndpointKept}},
		"a slice goes":                                 {nil, []Event{deleted("c", new(mirrored("a", "10.1.0.1", "http")))}, []Rule{EndpointKept}},
		"an endpoint goes, as it may":                  {[]Act{a}, []Event{added("c", &empty)}, nil},
		"a silent member's does":                       {[]Act{{"a", Key{}, Silence}}, []Event{added("c", &empty)}, nil},
		"another is silent":                            {[]Act{{"b", Key{}, Silence}}, []Event{added("c", &empty)}, []Rule{EndpointKept}},
		"an endpoint of no cluster":                    {nil, []Event{added("c", &ghost)}, []Rule{Unexported}},
		"of no cluster, while something else was done": {[]Act{a, b}, []Event{added("c", &ghost)}, []Rule{Unexported}},
		"an endpoint before it is seen at home":        {[]Act{a}, []Event{added("c", &two), added("a", &offered)}, nil},
		"a foreign Service changes":                    {nil, []Event{added("a", &edited)}, []Rule{Unmanaged}},
		"a foreign Service goes":                       {nil, []Event{deleted("a", &edited)}, []Rule{Unmanaged}},
		"its owner changed it":                         {[]Act{a}, []Event{added("a", &edited)}, nil},
		"another name":                                 {nil, []Event{added("c", &renamed)}, []Rule{Name}},
		"another name after a deletion by hand": {
			[]Act{{"c", web, Hand}}, []Event{deleted("c", new(derived("10.3.0.99"))), added("c", &renamed)}, []Rule{Name},
		},
		"another address":                 {nil, []Event{added("c", &elsewhere)}, []Rule{Address}},
		"another address, and other ends": {[]Act{a}, []Event{added("c", &elsewhere)}, []Rule{Address}},
		"another type":                    {[]Act{a, b}, []Event{added("c", &headless)}, nil},
		"another life": {
			[]Act{a, b}, []Event{deleted("c", new(derived("10.3.0.99"))), added("c", &elsewhere)}, nil,
		},
		"another life after both are deleted by hand": {
			[]Act{a, b, {"c", web, Hand}, {"c", web, HandImport}}, []Event{deleted("c", &owned), deleted("c", new(derived("10.3.0.99"))), added("c", &elsewhere)}, nil,
		},
		"another life, whose beginning alone was seen": {[]Act{a, b}, []Event{added("c", &remade)}, nil},
		"a derived Service is replaced":                {nil, []Event{added("c", &remade)}, []Rule{ImportKept, Address}},
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
			if found := h.Begin(good()); !slices.Equal(rulesOf(found), tc.want) {
				t.Errorf("got %v, want %v", found, tc.want)
			}
			if again := h.Begin(good()); len(again) > 0 {
				t.Errorf("the next epoch begins with %v", again)
			}
		})
	}
}

// TestOffered: what a cluster was about to offer may appear elsewhere though no watch has shown it.
//
// spec: E1
func TestOffered(t *testing.T) {
	t.Parallel()
	slice, export := sourceSlice("10.9.9.9", "http"), good().Clusters[0].Exports[0]
	for name, tc := range map[string]struct {
		offers []metav1.Object
		want   int
	}{
		"nothing":               {nil, 1},
		"a slice alone":         {[]metav1.Object{&slice}, 1},
		"an export alone":       {[]metav1.Object{&export}, 1},
		"a slice and an export": {[]metav1.Object{&slice, &export}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := good()
			w.Clusters[0].Exports, w.Clusters[0].Slices = nil, nil
			h := seen(w)
			for _, o := range tc.offers {
				h.Offers("a", o)
			}
			short := mirrored("a", "10.9.9.9", "http")
			short.Name += "2"
			h.Saw(added("c", &short))
			if found := h.Begin(w); len(found) != tc.want {
				t.Errorf("found %v, want %d findings", found, tc.want)
			}
		})
	}
}

// TestStable: what is exported in the epoch, and then left alone, must stay.
//
// spec: I2
func TestStable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		stable bool
		want   int
	}{"it is being exported": {false, 0}, "it is stable": {true, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := good()
			before.Clusters[0].Exports, before.Clusters[1].Exports = nil, nil
			h := seen(before)
			h.Do(Act{"a", web, Source})
			if tc.stable {
				h.MarkStable("a", web)
			}
			h.Saw(deleted("c", &good().Clusters[2].Imports[0]))
			if found := h.Begin(good()); len(found) != tc.want {
				t.Errorf("found %v, want %d findings", found, tc.want)
			}
		})
	}
}

// TestWithdrawn: what was exported in an epoch before is not by that exported in this one.
//
// spec: E3
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	h := seen(good())
	w := good()
	w.Clusters[1].Exports = nil
	h.Begin(w)
	late := mirrored("b", "10.2.0.1", "http")
	late.Name += "2"
	h.Saw(added("c", &late))
	if found := h.Begin(w); len(found) != 1 || found[0].Rule != Unexported {
		t.Errorf("found %v", found)
	}
}

// TestBehind: an epoch does not end before all that there is has been seen, and all that has gone.
func TestBehind(t *testing.T) {
	t.Parallel()
	w := good()
	h := seen(w)
	if behind := h.Behind(w); len(behind) > 0 {
		t.Errorf("behind: %v", behind)
	}
	newer := []mcsv1beta1.ServiceImport{*w.Clusters[2].Imports[0].DeepCopy()}
	newer[0].ResourceVersion = "7"
	w.Clusters[2].Imports = newer
	w.Clusters[1].Imports = nil
	want := []string{"b *v1beta1.ServiceImport shop/web-service", "c *v1beta1.ServiceImport shop/web-service"}
	if behind := h.Behind(w); !slices.Equal(behind, want) {
		t.Errorf("behind: %v, want %v", behind, want)
	}
}
