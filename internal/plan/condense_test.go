// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/plan"
)

// endpointsWith returns lists of endpoints; each differs from the one before in one more field.
func endpointsWith(t *testing.T) map[string][]discoveryv1.Endpoint {
	t.Helper()
	values := discoveryv1.Endpoint{
		Addresses:          []string{"10.1.0.9"},
		Conditions:         discoveryv1.EndpointConditions{Ready: new(true)},
		Hostname:           new("web-0"),
		TargetRef:          &corev1.ObjectReference{Name: "pod"},
		DeprecatedTopology: map[string]string{"a": "b"},
		NodeName:           new("node"),
		Zone:               new("zone"),
		Hints:              &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "zone"}}},
	}
	result := map[string][]discoveryv1.Endpoint{}
	for field, value := range reflect.ValueOf(values).Fields() {
		if value.IsZero() {
			t.Fatalf("this test knows no value for field %s", field.Name)
		}
		e := discoveryv1.Endpoint{Addresses: []string{"10.1.0.1"}}
		reflect.ValueOf(&e).Elem().FieldByIndex(field.Index).Set(value)
		result[field.Name] = []discoveryv1.Endpoint{e}
	}
	return result
}

// TestCondensedSlices: condensed slices are compared like complete ones, and are written completely.
//
// spec: D7, E3
func TestCondensedSlices(t *testing.T) {
	t.Parallel()
	lists := endpointsWith(t)
	lists["none"] = nil
	lists["plain"] = []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}}}
	lists["two"] = []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}}, {Addresses: []string{"10.1.0.2"}}}
	lists["in another order"] = []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.2"}}, {Addresses: []string{"10.1.0.1"}}}
	lists["one with two"] = []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1", "10.1.0.2"}}}
	for is, endpoints := range lists {
		for should, desired := range lists {
			o := stored(slice("a", func(s *discoveryv1.EndpointSlice) { s.Endpoints = plan.Condense(endpoints) }), "1")
			d := slice("a", func(s *discoveryv1.EndpointSlice) { s.Endpoints = desired })
			changes := plan.EndpointSlices([]*discoveryv1.EndpointSlice{d}, []*discoveryv1.EndpointSlice{o})
			switch {
			case is == should && len(changes) > 0:
				t.Errorf("%s: %v though it is as it should be", is, steps(changes))
			case is != should && len(changes) != 1:
				t.Errorf("%s that should be %s: %v", is, should, steps(changes))
			}
			for _, c := range changes {
				check.Equal(t, fmt.Sprintf("%s that should be %s is written as", is, should), desired, c.Object.Endpoints)
			}
		}
	}
}

// TestCondensedWithOtherLabels: if another field changes, the endpoints are written too, not their digest.
func TestCondensedWithOtherLabels(t *testing.T) {
	t.Parallel()
	d := slice("a")
	o := stored(slice("a", func(s *discoveryv1.EndpointSlice) { s.Labels["x"], s.Endpoints = "y", plan.Condense(s.Endpoints) }), "1")
	changes := plan.EndpointSlices([]*discoveryv1.EndpointSlice{d}, []*discoveryv1.EndpointSlice{o})
	if len(changes) != 1 {
		t.Fatal(steps(changes))
	}
	check.Equal(t, "endpoints that are written", d.Endpoints, changes[0].Object.Endpoints)
	if len(o.Endpoints) != 1 || o.Labels["x"] != "y" {
		t.Errorf("what was observed has changed: %+v", o)
	}
}

func TestCondense(t *testing.T) {
	t.Parallel()
	once := plan.Condense([]discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}}, {Addresses: []string{"10.1.0.2"}}})
	if len(once) != 1 || !cmp.Equal(once, plan.Condense(once)) {
		t.Errorf("condensed once: %v, twice: %v", once, plan.Condense(once))
	}
	if none := plan.Condense(nil); none != nil || plan.IsCondensed(none) {
		t.Errorf("of nothing: %v", none)
	}
}

// TestCondensedConditions: a condensed slice has an endpoint that serves as the best of its endpoints does.
func TestCondensedConditions(t *testing.T) {
	t.Parallel()
	conditions := func(ready, serving, terminating bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}}
	}
	unready, terminating, ended := conditions(false, false, false), conditions(false, true, true), conditions(false, false, true)
	serves := discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
	for name, tc := range map[string]struct {
		endpoints []discoveryv1.Endpoint
		want      discoveryv1.EndpointConditions
	}{
		"unready":                        {[]discoveryv1.Endpoint{unready, ended}, discoveryv1.EndpointConditions{Ready: new(false)}},
		"serving but unready":            {[]discoveryv1.Endpoint{conditions(false, true, false)}, discoveryv1.EndpointConditions{Ready: new(false)}},
		"terminating":                    {[]discoveryv1.Endpoint{unready, terminating, ended}, serves},
		"ready":                          {[]discoveryv1.Endpoint{terminating, conditions(true, true, false)}, discoveryv1.EndpointConditions{}},
		"ready, as nothing is known":     {[]discoveryv1.Endpoint{unready, {}}, discoveryv1.EndpointConditions{}},
		"terminating, before an unready": {[]discoveryv1.Endpoint{terminating, unready}, serves},
	} {
		check.Equal(t, name, tc.want, plan.Condense(tc.endpoints)[0].Conditions)
	}
}

// TestCondensedNode: condensed endpoints are on a node of this cluster if one of the best is, because traffic policies depend on it.
//
// spec: D7, L1
func TestCondensedNode(t *testing.T) {
	t.Parallel()
	on := func(node string, ready, terminating bool) discoveryv1.Endpoint {
		e := discoveryv1.Endpoint{Addresses: []string{"10.1.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: new(ready || terminating), Terminating: &terminating}}
		if node != "" {
			e.NodeName = &node
		}
		return e
	}
	for name, test := range map[string]struct {
		endpoints []discoveryv1.Endpoint
		want      string
	}{
		"none has a node":             {[]discoveryv1.Endpoint{on("", true, false)}, ""},
		"a ready one":                 {[]discoveryv1.Endpoint{on("", true, false), on("n", true, false)}, "n"},
		"one that is not ready":       {[]discoveryv1.Endpoint{on("", true, false), on("n", false, false)}, ""},
		"a terminating one of better": {[]discoveryv1.Endpoint{on("n", false, true), on("", true, false)}, ""},
		"a terminating one":           {[]discoveryv1.Endpoint{on("", false, false), on("n", false, true)}, "n"},
	} {
		check.Equal(t, name, test.want, ptr.Deref(plan.Condense(test.endpoints)[0].NodeName, ""))
	}
}
