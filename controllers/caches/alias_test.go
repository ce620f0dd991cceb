// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package caches_test

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestAliasSlicesAreNoSources: the slice of an alias is neither exported nor taken for a mirrored one, and no gateway reads listening ports in
// it, also if a user has edited its labels. Its name still says which alias is to restore it.
//
// spec: L1, E1
func TestAliasSlicesAreNoSources(t *testing.T) {
	t.Parallel()
	web := types.NamespacedName{Namespace: "shop", Name: "web"}
	for name, test := range map[string]struct {
		edit  func(*discoveryv1.EndpointSlice)
		found bool
	}{
		"as written":   {func(*discoveryv1.EndpointSlice) {}, true},
		"no manager":   {func(s *discoveryv1.EndpointSlice) { delete(s.Labels, discoveryv1.LabelManagedBy) }, false},
		"no import":    {func(s *discoveryv1.EndpointSlice) { delete(s.Labels, clusterset.LabelAliasOf) }, false},
		"another name": {func(s *discoveryv1.EndpointSlice) { s.Labels[discoveryv1.LabelServiceName] = "other" }, true},
		"no labels":    {func(s *discoveryv1.EndpointSlice) { s.Labels = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: clusterset.AliasSliceName("web", clusterset.MirroredSliceName("derived-1", "b", "0123456789")),
				Labels: map[string]string{
					discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: clusterset.ManagedBy, clusterset.LabelAliasOf: "import",
				},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: clusterset.FieldManager}, {Manager: "kubectl"}},
			}}
			test.edit(slice)
			if _, err := caches.StripManagedFields(slice); err != nil {
				t.Fatal(err)
			}
			if key, ok := caches.SourceService(slice); ok {
				t.Errorf("it is exported as a slice of %s", key)
			}
			if key, ok := caches.MirroredService(slice); ok {
				t.Errorf("it is taken for a mirrored slice of %s", key)
			}
			if ports, err := render.ListeningPorts(slice); err == nil {
				t.Errorf("it has the listening ports %v", ports)
			}
			if key, ok := caches.AliasService(slice); ok != test.found || ok && key != web {
				t.Errorf("it is found as one of %s: %t, want %t", key, ok, test.found)
			}
			if key, ok := caches.NamedForAlias(slice); !ok || key != web {
				t.Errorf("its events are those of %s: %t", key, ok)
			}
		})
	}
	own := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-x7f9k", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}}}
	if key, ok := caches.SourceService(own); !ok || key != web {
		t.Errorf("a slice of the Service itself is not exported")
	}
}
