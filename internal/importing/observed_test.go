// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestKnowsOwnExport: if the hub was not read, the local API server says whether this cluster exports a service, unless the slices with its
// ID may be those of another cluster with this ID: they have no node, nor the annotation of own slices without one (D6).
//
// spec: E3, D6, K2
func TestKnowsOwnExport(t *testing.T) {
	t.Parallel()
	slice := func(source string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{mcsv1beta1.LabelSourceCluster: source}}, Endpoints: plan.Condense(endpoints)}
	}
	marked := func(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
		s.Annotations = map[string]string{clusterset.AnnotationLocal: "true"}
		return s
	}
	here, elsewhere := discoveryv1.Endpoint{Addresses: []string{"10.1.0.1"}, NodeName: new("node-1")}, discoveryv1.Endpoint{Addresses: []string{"10.1.0.2"}}
	for name, test := range map[string]struct {
		export   *mcsv1beta1.ServiceExport
		mirrored []*discoveryv1.EndpointSlice
		want     bool
	}{
		"nothing":                              {},
		"a ServiceExport":                      {export: &mcsv1beta1.ServiceExport{}, mirrored: []*discoveryv1.EndpointSlice{slice("own", elsewhere)}, want: true},
		"endpoints of its nodes":               {mirrored: []*discoveryv1.EndpointSlice{slice("own", elsewhere), slice("own", elsewhere, here)}, want: true},
		"endpoints with its ID, without nodes": {mirrored: []*discoveryv1.EndpointSlice{slice("own", elsewhere), slice("own")}},
		"its endpoints, which have no nodes":   {mirrored: []*discoveryv1.EndpointSlice{slice("own", elsewhere), marked(slice("own", elsewhere))}, want: true},
		"its slice, without endpoints":         {mirrored: []*discoveryv1.EndpointSlice{marked(slice("own"))}, want: true},
		"a gateway of its nodes":               {mirrored: []*discoveryv1.EndpointSlice{slice("other", here)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "known", test.want, Observed{Cluster: "own", Sources: sources.Sources{Export: test.export}, Existing: Existing{Mirrored: test.mirrored}}.knowsOwnExport())
		})
	}
}

// TestDeniedNamespace: whatever exists of an import in a denied namespace is deleted, also a derived Service whose exporters are not known.
//
// spec: I1
func TestDeniedNamespace(t *testing.T) {
	t.Parallel()
	derived := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: clusterset.ShortDerivedName(key.Name), Labels: map[string]string{
		clusterset.LabelManagedBy: clusterset.ManagedBy, mcsv1beta1.LabelServiceName: key.Name, clusterset.LabelServiceImported: "true",
	}}}
	imported := &mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}}}
	named := imported.DeepCopy()
	named.Status.Clusters = []mcsv1beta1.ClusterStatus{{Cluster: "a"}}
	for name, remains := range map[string]Observed{
		"nothing":                  {},
		"a derived Service":        {Existing: Existing{Services: []*corev1.Service{derived}}},
		"an import":                {Existing: Existing{ServiceImport: named}},
		"an import without status": {Existing: Existing{ServiceImport: imported, Services: []*corev1.Service{derived}}},
		"a missing exporter":       {Existing: Existing{ServiceImport: named}, Sources: sources.Sources{Hub: sources.Hub{Missing: map[clusterset.ClusterID]sources.Missing{"a": {Export: true}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			remains.Namespace, remains.Sources.Key = NamespaceDenied, key
			p := PlanOf(remains)
			check.Equal(t, "state", withdrawn, p.decision.state)
			if existing := len(remains.Services) > 0 || remains.ServiceImport != nil; p.isEmpty() == existing {
				t.Errorf("changes: %v", p.Stages)
			}
		})
	}
}
