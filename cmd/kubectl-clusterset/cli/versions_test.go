// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// outcomeIn returns "ok", "note" or "FAIL" for what a check reports.
func outcomeIn(t *testing.T, run func(*report)) string {
	t.Helper()
	var out bytes.Buffer
	run(&report{out: &out})
	fields := strings.Fields(out.String())
	if strings.Count(out.String(), "\n") != 1 {
		t.Fatalf("reported\n%s", out.String())
	}
	return fields[0]
}

// TestVersions: no member is upgraded or joined to a version that is newer than its hub, and no hub is downgraded, unless it is asked for. If it
// is not known which is newer, a member is reported, and a hub is refused if it would lose something.
func TestVersions(t *testing.T) {
	t.Parallel()
	lost := []string{"Member.spec.later"}
	for _, tc := range []struct {
		hub, command            string
		member, init, initLoses string
	}{
		{"v1.2.0", "v1.2.0", "ok", "ok", "FAIL"},
		{"v1.2.0", "v1.1.0", "ok", "FAIL", "FAIL"},
		{"v1.2.0", "v1.2.0-rc.1", "ok", "FAIL", "FAIL"},
		{"v1.2.0", "v1.3.0", "FAIL", "ok", "note"},
		{"v1.2.0", "v2.0.0", "FAIL", "ok", "note"},
		{"v1.2.0", "dev", "note", "ok", "FAIL"},
		{"dev", "v1.2.0", "note", "ok", "FAIL"},
		{"dev", "dev", "ok", "ok", "FAIL"},
		{"", "v1.2.0", "note", "ok", "FAIL"},
		{"", "dev", "note", "ok", "FAIL"},
	} {
		name := fmt.Sprintf("hub %q, command %s: ", tc.hub, tc.command)
		check.Equal(t, name+"member", tc.member, outcomeIn(t, func(r *report) { checkSkew(tc.command, tc.hub, nil, r) }))
		init := func(policy downgradePolicy, lost []string) string {
			return outcomeIn(t, func(r *report) { hubChange{tc.hub, tc.command, lost}.report(policy, r) })
		}
		check.Equal(t, name+"init-hub", tc.init, init(refuseDowngrade, nil))
		check.Equal(t, name+"init-hub with something to lose", tc.initLoses, init(refuseDowngrade, lost))
		allowed := strings.Replace(tc.init, "FAIL", "note", 1)
		check.Equal(t, name+"init-hub --allow-downgrade", allowed, init(allowDowngrade, nil))
		check.Equal(t, name+"init-hub --allow-downgrade with something to lose", "note", init(allowDowngrade, lost))
	}
	check.Equal(t, "a hub that does not answer", "note", outcomeIn(t, func(r *report) { checkSkew("v1.2.0", "", errors.New("down"), r) }))
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
			one, err := toDefinition(object)
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
		check.Equal(t, name, tc.want, lostIn(definition(tc.existing...), definition(tc.ours...)))
	}
}

// TestHubSaysItsVersion: the version that init-hub sets is where members read it.
func TestHubSaysItsVersion(t *testing.T) {
	t.Parallel()
	objects, err := manifests.Hub()
	check.Must(t, err)
	release, err := manifests.CurrentRelease()
	check.Must(t, err)
	version := func() (found string) {
		for _, object := range objects {
			if isDefinition(object) && object.GetName() == hub.VersionObject {
				found += object.GetAnnotations()[clusterset.AnnotationVersion]
			}
		}
		return found
	}
	check.Equal(t, "the version in the kustomization", release.Version, version())
	check.Must(t, setVersion(objects, "v1.2.3"))
	check.Equal(t, "the version that is set", "v1.2.3", version())
}

func TestTagOf(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"example.com:5000/a/tombolo-agent:v1.2.3": "v1.2.3", "example.com:5000/a/tombolo-agent": "", "tombolo-agent:v1@sha256:0": "v1", "": "",
	} {
		check.Equal(t, image, want, tagOf(image))
	}
}
