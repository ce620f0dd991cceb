// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// A member may be hostile: all that it writes has bounds. Lists and maps are atomic, or within an atomic object, which keeps managedFields
// small.
func TestSchemasAreBounded(t *testing.T) {
	for _, crd := range append(crds(t, "hub"), crds(t, "crd/gateway")...) {
		for _, version := range crd.Spec.Versions {
			schema := version.Schema.OpenAPIV3Schema
			for _, ofKubernetes := range []string{"apiVersion", "kind", "metadata"} {
				delete(schema.Properties, ofKubernetes)
			}
			for _, problem := range unbounded(crd.Spec.Names.Kind, *schema, false) {
				t.Error(problem)
			}
		}
	}
}

// unbounded returns the problems below a path of a schema, which may be within an atomic object.
func unbounded(path string, s apiextensionsv1.JSONSchemaProps, within bool) []string {
	var problems []string
	complain := func(bad bool, what string) {
		if bad {
			problems = append(problems, path+": "+what)
		}
	}
	switch s.Type {
	case "object":
		open := s.AdditionalProperties != nil
		within = within || s.XMapType != nil && *s.XMapType == "atomic"
		complain(s.XPreserveUnknownFields != nil, "preserves unknown fields")
		complain(open && s.MaxProperties == nil, "a map without maxProperties")
		complain(open && (s.XMapType == nil || *s.XMapType != "atomic"), "a map that is not atomic")
		if open {
			problems = append(problems, unbounded(path+".*", *s.AdditionalProperties.Schema, within)...)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			problems = append(problems, unbounded(path+"."+name, s.Properties[name], within)...)
		}
	case "array":
		complain(s.MaxItems == nil, "a list without maxItems")
		complain(s.XListType == nil || *s.XListType != "atomic" && !within, "a list that is not atomic")
		problems = append(problems, unbounded(path+"[]", *s.Items.Schema, within)...)
	case "string":
		complain(s.MaxLength == nil && s.Enum == nil && s.Format != "date-time", "a string without maxLength")
	case "integer":
		complain(s.Minimum == nil || s.Format == "" && s.Maximum == nil, "a number without bounds")
	case "boolean":
	default:
		complain(true, "type "+s.Type+" is not known to this test")
	}
	return problems
}

func TestUnboundedIsNoticed(t *testing.T) {
	list, text := apiextensionsv1.JSONSchemaProps{Type: "array"}, apiextensionsv1.JSONSchemaProps{Type: "string"}
	list.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text}
	dictionary := apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &list}}
	got := unbounded("X", apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"map": dictionary, "number": {Type: "integer"},
	}}, false)
	want := []string{
		"X.map: a map without maxProperties",
		"X.map: a map that is not atomic",
		"X.map.*: a list without maxItems",
		"X.map.*: a list that is not atomic",
		"X.map.*[]: a string without maxLength",
		"X.number: a number without bounds",
	}
	check.Equal(t, "unbounded fields", want, got)
}

// spec: K1
func TestClusterProperty(t *testing.T) {
	objects := must(t)(manifests.Render("crd"))
	crd := named[apiextensionsv1.CustomResourceDefinition](t, objects, "CustomResourceDefinition", "clusterproperties.about.k8s.io")
	const approval = "https://github.com/kubernetes/enhancements/pull/3084"
	check.Equal(t, "api-approved.kubernetes.io", approval, crd.Annotations["api-approved.kubernetes.io"])
	check.Equal(t, "scope", apiextensionsv1.ClusterScoped, crd.Spec.Scope)
	type served struct{ Served, Storage bool }
	got := map[string]served{}
	for _, version := range crd.Spec.Versions {
		got[version.Name] = served{version.Served, version.Storage}
		value := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["value"]
		if value.MinLength == nil || *value.MinLength != 1 {
			t.Errorf("%s: spec.value may be empty", version.Name)
		}
		check.Equal(t, "schema of "+version.Name+" and that of the first version", crd.Spec.Versions[0].Schema, version.Schema)
	}
	want := map[string]served{"v1alpha1": {Served: true}, "v1beta1": {Served: true, Storage: true}}
	check.Equal(t, "versions", want, got)
}

// spec: K1
func TestMemberDefinitions(t *testing.T) {
	var got []string
	for _, crd := range ofKind[apiextensionsv1.CustomResourceDefinition](t, must(t)(manifests.MemberDefinitions()), "CustomResourceDefinition") {
		for _, version := range crd.Spec.Versions {
			got = append(got, fmt.Sprintf("%s %s served: %t, stored: %t", crd.Name, version.Name, version.Served, version.Storage))
		}
	}
	var want []string
	for _, name := range []string{"serviceexports.multicluster.x-k8s.io", "serviceimports.multicluster.x-k8s.io", "clusterproperties.about.k8s.io"} {
		want = append(want, name+" v1alpha1 served: true, stored: false", name+" v1beta1 served: true, stored: true")
	}
	slices.Sort(got)
	slices.Sort(want)
	check.Equal(t, "definitions", want, got)
}

func crds(t *testing.T, kustomization string) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return ofKind[apiextensionsv1.CustomResourceDefinition](t, must(t)(manifests.Render(kustomization)), "CustomResourceDefinition")
}
