// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"bytes"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/mcs-api/config/crd"
	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/internal/check"
)

// TestMemberDefinitions: the kinds of the Multi-Cluster Services API are never downgraded, and never replaced unless requested.
func TestMemberDefinitions(t *testing.T) {
	newer, unserved := &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
	for _, definition := range []*apiextensionsv1.CustomResourceDefinition{newer, unserved} {
		check.Must(t, yaml.Unmarshal(crd.ServiceExportCRD, definition))
	}
	newer.Labels[crd.ReleaseVersionLabel] = "v9.0.0"
	unserved.Labels = nil // as in old releases
	for i, version := range unserved.Spec.Versions {
		unserved.Spec.Versions[i].Served = version.Name != "v1beta1"
	}
	for name, test := range map[string]struct {
		existing client.Object
		policy   Policy
		needed   int
		says     string
	}{
		"newer":                {newer, Keep, 2, "ok    serviceexports.multicluster.x-k8s.io is there (v9.0.0) and stays as it is"},
		"newer, in an upgrade": {newer, Upgrade, 2, "ok    serviceexports.multicluster.x-k8s.io is there (v9.0.0) and stays as it is"},
		"without v1beta1":      {unserved, Keep, 2, "does not serve v1beta1, which Tombolo needs: kubectl clusterset upgrade"},
		"older, in an upgrade": {unserved, Upgrade, 3, "ok    serviceexports.multicluster.x-k8s.io is of an unknown release and will be brought to"},
	} {
		var out bytes.Buffer
		needed, err := CheckMember(t.Context(), clusterOf(t, test.existing), test.policy, &output.Report{Out: &out})
		if err != nil || len(needed) != test.needed || !strings.Contains(out.String(), test.says) {
			t.Errorf("%s: %d definitions are needed, want %d (%v), and it must say %q:\n%s", name, len(needed), test.needed, err, test.says, out.String())
		}
	}
}

// clusterOf returns a cluster with these objects.
func clusterOf(t *testing.T, objects ...client.Object) *connection.Cluster {
	t.Helper()
	scheme, err := connection.NewScheme()
	check.Must(t, err)
	return &connection.Cluster{What: "this cluster", Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}
}

// TestLost: fields, values and later versions that only the existing definition has are named. Versions that were removed are not.
func TestLost(t *testing.T) {
	t.Parallel()
	definition := func(versions ...string) *apiextensionsv1.CustomResourceDefinition {
		d := &apiextensionsv1.CustomResourceDefinition{}
		d.Spec.Names.Kind = "Rule"
		for _, version := range versions {
			name, schema, _ := strings.Cut(version, " ")
			if schema == "" {
				schema = "{}"
			}
			object := &unstructured.Unstructured{}
			check.Must(t, object.UnmarshalJSON([]byte(`{"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
				"spec": {"versions": [{"name": "`+name+`", "schema": {"openAPIV3Schema": `+schema+`}}]}}`)))
			one, err := To(object)
			check.Must(t, err)
			d.Spec.Versions = append(d.Spec.Versions, one.Spec.Versions...)
		}
		return d
	}
	const small = `v1 {"properties": {"spec": {"properties": {"a": {"enum": ["x"]}, "l": {"items": {"properties": {}}}, "m": {"additionalProperties": {"properties": {}}}}}}}`
	const large = `v1 {"properties": {"spec": {"properties": {"a": {"enum": ["x", "y"]}, "b": {}, "l": {"items": {"properties": {"c": {}}}}, "m": {"additionalProperties": {"properties": {"d": {}}}}}}}}`
	for name, tc := range map[string]struct {
		existing, ours []string
		want           []string
	}{
		"the same":                          {[]string{small}, []string{small}, nil},
		"a larger one":                      {[]string{small}, []string{large}, nil},
		"a smaller one":                     {[]string{large}, []string{small}, []string{`Rule.spec.a: "y"`, "Rule.spec.b", "Rule.spec.l[].c", "Rule.spec.m.*.d"}},
		"values that are no longer limited": {[]string{`v1 {"enum": ["x"]}`}, []string{"v1"}, nil},
		"all fields":                        {[]string{small}, []string{`v1 {"x-kubernetes-preserve-unknown-fields": true}`}, nil},
		"a later version":                   {[]string{"v1", "v2beta1"}, []string{"v1"}, []string{"version v2beta1 of Rule"}},
		"an earlier version":                {[]string{"v1alpha1", "v1"}, []string{"v1"}, nil},
		"a version between":                 {[]string{"v1beta1"}, []string{"v1alpha1", "v1"}, nil},
	} {
		check.Equal(t, name, tc.want, LostIn(definition(tc.existing...), definition(tc.ours...)))
	}
}
