// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset/clustersettest"
)

// TestJoinedByName: kube-proxy finds the endpoints of a port by its name in the derived Service, and an implementation of the Gateway API by its
// name in the ServiceImport. Both find the same ones. The exception: if the name in the ServiceImport is that of another port in the derived
// Service, as that of a port called unnamed which is younger than one without a name.
//
// spec: R2
func TestJoinedByName(t *testing.T) {
	t.Parallel()
	palette := clustersettest.Few()
	palette.PortNames = []string{"", "unnamed", "http"}
	rapid.Check(t, func(t *rapid.T) {
		exports := palette.Exports(t)
		m, ok := merge.Merge(exports)
		if !ok {
			t.Skip()
		}
		site := render.Site{IPFamilies: v4v6, DerivedName: "derived-1"}
		var sources []clusterset.Slice
		for i, e := range exports {
			s := clusterset.Slice{Cluster: e.Cluster, ID: fmt.Sprint(i), AddressType: discoveryv1.AddressType(e.IPFamilies[0]), Endpoints: []clusterset.Endpoint{at("10.1.0.1")}}
			for _, port := range e.Ports {
				s.Ports = append(s.Ports, clusterset.EndpointPort{Name: port.Name, Protocol: port.Protocol, Port: port.Port + 1000})
			}
			sources = append(sources, s)
		}
		derived := render.Service(m, site)
		if derived == nil {
			t.Skip()
		}
		mirrored, imported := render.Slices(m, site, sources), render.ServiceImport(m, site, nil).Spec.Ports
		for _, slice := range mirrored {
			names := map[string]bool{}
			for _, port := range slice.Ports {
				if names[*port.Name] {
					t.Fatalf("slice %s has two ports %q", slice.Name, *port.Name)
				}
				names[*port.Name] = true
				if m.Type == mcsv1beta1.Headless && !slices.ContainsFunc(imported, func(p mcsv1beta1.ServicePort) bool { return p.Name == *port.Name }) {
					t.Fatalf("slice %s has a port %q, for which DNS serves an SRV name that the import does not have", slice.Name, *port.Name)
				}
			}
		}
		for i, port := range imported {
			isTaken := func() bool {
				j := slices.IndexFunc(derived.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == port.Name })
				return j >= 0 && j != i
			}
			byImport, byDerived := targets(mirrored, port.Name, port), targets(mirrored, derived.Spec.Ports[i].Name, port)
			if m.Type == mcsv1beta1.Headless { // kube-proxy ignores it
				byDerived = targetsOf(m, sources, port)
			}
			if !isTaken() && !slices.Equal(byImport, byDerived) {
				t.Fatalf("port %q of the import has the endpoints %v, port %q of the derived Service %v", port.Name, byImport, derived.Spec.Ports[i].Name, byDerived)
			}
		}
	})
}

// targets returns the slices, and the numbers of their ports, that have a port of this name and the protocol of an imported port.
func targets(mirrored []*discoveryv1.EndpointSlice, name string, imported mcsv1beta1.ServicePort) []string {
	var result []string
	for _, slice := range mirrored {
		for _, port := range slice.Ports {
			if *port.Name == name && *port.Protocol == imported.Protocol {
				result = append(result, fmt.Sprintf("%s:%d", slice.Name, *port.Port))
			}
		}
	}
	return result
}

// targetsOf returns what targets returns for the source slices whose clusters serve an imported port.
func targetsOf(m merge.Merged, sources []clusterset.Slice, imported mcsv1beta1.ServicePort) []string {
	var result []string
	for _, source := range sources {
		for _, port := range source.Ports {
			if merged, ok := m.PortNames[source.Cluster][port.Name]; ok && merged == imported.Name {
				result = append(result, fmt.Sprintf("%s:%d", clusterset.MirroredSliceName("derived-1", source.Cluster, source.ID), port.Port))
			}
		}
	}
	slices.Sort(result)
	return result
}
