// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/e2e/bench/agent/world"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// newTestServices returns services of the scale part.
func newTestServices(n, publishers int) *scaleServices {
	var members []*world.Member
	for i := range publishers {
		members = append(members, &world.Member{ID: clusterset.ClusterID(fmt.Sprintf("m%02d", i)), Number: i + 2})
	}
	services := newScaleServices(members)
	services.add(n)
	return services
}

// TestScaleServices: the full size has the endpoints of the target, and services with each combination of properties.
func TestScaleServices(t *testing.T) {
	services := newTestServices(scaleSize, scalePublishers)
	if n := services.endpoints(); n < 250_000 || n > 260_000 {
		t.Errorf("%d endpoints are imported", n)
	}
	exporters, sorts, addresses := map[int]int{}, map[string]int{}, map[string]bool{}
	for _, s := range services.all {
		exporters[len(s.exports)]++
		sorts[fmt.Sprintf("%s %v %d", s.kind, s.families, len(s.ports))]++
		for _, e := range s.exports {
			for _, r := range e.slices {
				for _, g := range r.record.Spec.Groups {
					if len(g.Addresses) > 100 {
						t.Errorf("%s has more endpoints than Kubernetes adds to a slice", r.record.Name)
					}
					for _, a := range g.Addresses {
						if addresses[string(a)] {
							t.Fatalf("%s exists twice", a)
						}
						addresses[string(a)] = true
					}
				}
			}
		}
	}
	if len(exporters) != 3 || len(sorts) != 12 {
		t.Errorf("numbers of exporters: %v, combinations: %v", exporters, sorts)
	}
	for name, n := range sorts {
		if n < 10 {
			t.Errorf("only %d services of %s", n, name)
		}
	}
}

// TestConflicts: the difference of a younger export is not expected of the import, and endpoints of a port with another
// number are not.
func TestConflicts(t *testing.T) {
	for i, want := range [][]string{{"http:8080", "https:8443"}, {"https:8443"}, {"http:8080", "https:8443"}, {"http:8080", "https:8443"}} {
		s := newTestServices(1, 1).all[0]
		s.ports = append(s.ports, s.ports[0])
		s.ports[1].Name, s.ports[1].Port = "https", 443
		expected, young := s.expected(), s.exportFrom(&world.Member{ID: "young", Number: 9}, 1)
		before := young.record.DeepCopy()
		conflicts[i](young)
		if cmp.Equal(before.Spec, young.record.Spec) {
			t.Errorf("conflict %d changes nothing", i)
		}
		if got := young.slice(s, corev1.IPv4Protocol).ports; !slices.Equal(want, got) {
			t.Errorf("conflict %d: endpoints are imported on %v, want %v", i, got, want)
		}
		if got := s.expected(); !slices.Equal(expected, got) {
			t.Errorf("conflict %d changes what is expected: %v", i, got)
		}
	}
}

// TestLacking: lines that are missing or not expected are found.
func TestLacking(t *testing.T) {
	s := newTestServices(1, 1).all[0]
	want := s.expected()
	if len(want) != 5 || !slices.IsSorted(want) {
		t.Fatalf("a service of one endpoint has the lines %q", want)
	}
	other := slices.Clone(want)
	other[0] = "another"
	if got := lacking(want, other); len(got) != 1 || got[0] != want[0] {
		t.Errorf("missing: %q", got)
	}
	if got := lacking(other, want); len(got) != 1 || got[0] != "another" {
		t.Errorf("not expected: %q", got)
	}
	s.exports[0].slices[0].record.Spec.Groups[0].Addresses[0] = "10.2.255.255"
	if slices.Equal(want, s.expected()) {
		t.Error("another address makes no difference")
	}
}
