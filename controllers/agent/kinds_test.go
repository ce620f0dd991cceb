// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// TestKinds: the agent works only with kinds that the cluster serves in its version, with the right scope and a status.
func TestKinds(t *testing.T) {
	t.Parallel()
	k := kinds{
		schema.GroupVersion{Group: "example.com", Version: "v1beta1"},
		map[string]scope{"exports": namespaced, "policies": clusterScoped},
		"install them",
	}
	resource := func(name string, s scope) metav1.APIResource {
		return metav1.APIResource{Name: name, Namespaced: s == namespaced}
	}
	exports, exportStatus := resource("exports", namespaced), resource("exports/status", namespaced)
	policies, policyStatus := resource("policies", clusterScoped), resource("policies/status", clusterScoped)
	for name, tc := range map[string]struct {
		served   []metav1.APIResource
		versions []string
		want     []string
	}{
		"all":                  {[]metav1.APIResource{policyStatus, exports, policies, exportStatus}, []string{"v1beta1"}, nil},
		"another version, too": {[]metav1.APIResource{exports, exportStatus, policies, policyStatus}, []string{"v1alpha1", "v1beta1"}, nil},
		"no CRDs": {nil, nil, []string{
			"does not serve exports.example.com/v1beta1", "does not serve policies.example.com/v1beta1",
		}},
		"an older set": {nil, []string{"v1alpha1"}, []string{
			"does not serve exports.example.com/v1beta1, only v1alpha1: other CRDs have replaced those of this version",
			"does not serve policies.example.com/v1beta1, only v1alpha1: other CRDs have replaced those of this version",
		}},
		"one CRD of an older set": {[]metav1.APIResource{exports, exportStatus}, []string{"v1alpha1", "v1beta1"}, []string{
			"does not serve policies.example.com/v1beta1",
		}},
		"another scope": {[]metav1.APIResource{resource("exports", clusterScoped), exportStatus, policies, policyStatus}, []string{"v1beta1"}, []string{
			"serves exports.example.com/v1beta1 with another scope than Namespaced",
		}},
		"another scope than none": {[]metav1.APIResource{exports, exportStatus, resource("policies", namespaced), policyStatus}, []string{"v1beta1"}, []string{
			"serves policies.example.com/v1beta1 with another scope than Cluster",
		}},
		"a kind without a status": {[]metav1.APIResource{exports, policies, policyStatus}, []string{"v1beta1"}, []string{
			"serves exports.example.com/v1beta1 without the subresource status",
		}},
		"the status of another one": {[]metav1.APIResource{exports, exportStatus, policies}, []string{"v1beta1"}, []string{
			"serves policies.example.com/v1beta1 without the subresource status",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			all := k.check(tc.served, tc.versions)
			for _, kind := range all {
				if kind.err != nil {
					got = append(got, kind.err.Error())
					check.Equal(t, "missing", true, isMissing(kind.err))
				}
			}
			var want []string
			for _, problem := range tc.want {
				want = append(want, "the cluster "+problem+": install them")
			}
			check.Equal(t, "errors", want, got)
			check.Equal(t, "kinds", []string{"exports.example.com", "policies.example.com"}, []string{all[0].name, all[1].name})
		})
	}
	check.Equal(t, "an unknown answer says that a kind is missing", false, isMissing(errors.New("connection refused")))
	check.Equal(t, "versions", []string{"v1", "v2"}, versionsOf(&metav1.APIGroupList{Groups: []metav1.APIGroup{
		{Name: "a", Versions: []metav1.GroupVersionForDiscovery{{Version: "v3"}}}, {Name: "b", Versions: []metav1.GroupVersionForDiscovery{{Version: "v1"}, {Version: "v2"}}},
	}}, "b"))
}
