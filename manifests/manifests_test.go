// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

func TestHub(t *testing.T) {
	want := []string{
		"CustomResourceDefinition heartbeats.hub.tombolo-mcs.io",
		"CustomResourceDefinition members.hub.tombolo-mcs.io",
		"CustomResourceDefinition publishedendpoints.hub.tombolo-mcs.io",
		"CustomResourceDefinition publishedgateways.hub.tombolo-mcs.io",
		"CustomResourceDefinition publishedservices.hub.tombolo-mcs.io",
		"ClusterRole tombolo-hub-read",
		"ValidatingAdmissionPolicy addresses.hub.tombolo-mcs.io",
		"ValidatingAdmissionPolicy deletions.hub.tombolo-mcs.io",
		"ValidatingAdmissionPolicy gateways.hub.tombolo-mcs.io",
		"ValidatingAdmissionPolicy members.hub.tombolo-mcs.io",
		"ValidatingAdmissionPolicy metadata.hub.tombolo-mcs.io",
		"ValidatingAdmissionPolicy records.hub.tombolo-mcs.io",
		"ValidatingAdmissionPolicy tokens.hub.tombolo-mcs.io",
		"ValidatingAdmissionPolicyBinding addresses.hub.tombolo-mcs.io",
		"ValidatingAdmissionPolicyBinding deletions.hub.tombolo-mcs.io",
		"ValidatingAdmissionPolicyBinding gateways.hub.tombolo-mcs.io",
		"ValidatingAdmissionPolicyBinding members.hub.tombolo-mcs.io",
		"ValidatingAdmissionPolicyBinding metadata.hub.tombolo-mcs.io",
		"ValidatingAdmissionPolicyBinding records.hub.tombolo-mcs.io",
		"ValidatingAdmissionPolicyBinding tokens.hub.tombolo-mcs.io",
		"FlowSchema members.hub.tombolo-mcs.io",
		"PriorityLevelConfiguration members.hub.tombolo-mcs.io",
	}
	check.Equal(t, "objects", want, names(must(t)(manifests.Hub())))
}

func TestMember(t *testing.T) {
	// IDs that YAML or kustomize may parse as another type.
	for _, id := range []clusterset.ClusterID{"a", "cluster-a", "007", "1e3", "null", "member-member", "y"} {
		t.Run(string(id), func(t *testing.T) {
			objects := must(t)(manifests.Member(manifests.MemberOptions{ClusterID: id, PodCIDRs: prefixes("10.1.0.0/16")}))
			namespace := "member-" + string(id)
			want := []string{
				"Namespace " + namespace,
				"ResourceQuota " + namespace + "/tombolo",
				"ServiceAccount " + namespace + "/tombolo-agent",
				"Role " + namespace + "/tombolo-agent",
				"RoleBinding " + namespace + "/tombolo-agent",
				"ClusterRoleBinding tombolo-hub-read:" + string(id),
				"Member " + namespace + "/member",
			}
			check.Equal(t, "objects", want, names(objects))
			subject := []any{map[string]any{"kind": "ServiceAccount", "name": "tombolo-agent", "namespace": namespace}}
			for _, i := range []int{4, 5} {
				check.Equal(t, want[i], subject, objects[i].Object["subjects"])
			}
			got, _, _ := unstructured.NestedString(objects[6].Object, "spec", "clusterID")
			check.Equal(t, "clusterID", string(id), got)
		})
	}
}

func TestMemberAsInExample(t *testing.T) {
	got := must(t)(manifests.Member(manifests.MemberOptions{
		ClusterID:    "cluster-a",
		PodCIDRs:     prefixes("10.1.0.0/16", "fd00:10:1::/48"),
		NodeCIDRs:    prefixes("192.0.2.0/24"),
		ServiceCIDRs: prefixes("10.96.0.0/16"),
	}))
	want := must(t)(manifests.Render("overlays/example-member"))
	check.Equal(t, "objects that are written by hand (want) and rendered", want, got)
}

func TestMemberOptions(t *testing.T) {
	objects := must(t)(manifests.Member(manifests.MemberOptions{
		ClusterID:   "a",
		PodCIDRs:    prefixes("10.1.0.0/16"),
		Namespaces:  []string{"shop", "0"},
		ClaimedAges: hubv1alpha1.ClaimedAgesTrusted,
		MaxServices: 7,
	}))
	wantSpec := map[string]any{
		"clusterID":   "a",
		"podCIDRs":    []any{"10.1.0.0/16"},
		"namespaces":  []any{"shop", "0"},
		"claimedAges": "Trusted",
	}
	check.Equal(t, "Member", wantSpec, find(t, objects, "Member").Object["spec"])
	wantQuota := map[string]any{"hard": map[string]any{
		"count/publishedservices.hub.tombolo-mcs.io":  "7",
		"count/publishedendpoints.hub.tombolo-mcs.io": "1k", // as in resourcequota.yaml
	}}
	check.Equal(t, "ResourceQuota", wantQuota, find(t, objects, "ResourceQuota").Object["spec"])
}

func TestRenderUnknown(t *testing.T) {
	if objects, err := manifests.Render("no-such"); err == nil {
		t.Errorf("%d objects, want an error", len(objects))
	}
}

// must fails the test if rendering fails.
func must(t *testing.T) func([]*unstructured.Unstructured, error) []*unstructured.Unstructured {
	t.Helper()
	return func(objects []*unstructured.Unstructured, err error) []*unstructured.Unstructured {
		t.Helper()
		check.Must(t, err)
		return objects
	}
}

// names returns "Kind name" or "Kind namespace/name" of each object.
func names(objects []*unstructured.Unstructured) []string {
	out := make([]string, 0, len(objects))
	for _, o := range objects {
		name := o.GetName()
		if o.GetNamespace() != "" {
			name = o.GetNamespace() + "/" + name
		}
		out = append(out, o.GetKind()+" "+name)
	}
	return out
}

func find(t *testing.T, objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == kind {
			return o
		}
	}
	t.Fatalf("no %s among %v", kind, names(objects))
	return nil
}

// ofKind returns the objects of a kind as values of a type.
func ofKind[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) []T {
	t.Helper()
	var all []T
	for _, o := range objects {
		if o.GetKind() != kind {
			continue
		}
		text, err := o.MarshalJSON()
		check.Must(t, err)
		var value T
		check.Must(t, json.Unmarshal(text, &value))
		all = append(all, value)
	}
	return all
}

// named returns the object of a kind with a name as a value of a type.
func named[T any](t *testing.T, objects []*unstructured.Unstructured, kind, name string) T {
	t.Helper()
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	if i < 0 {
		t.Fatalf("no %s %s among %v", kind, name, names(objects))
	}
	return ofKind[T](t, objects[i:i+1], kind)[0]
}

func prefixes(cidrs ...string) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(cidrs))
	for _, cidr := range cidrs {
		out = append(out, netip.MustParsePrefix(cidr))
	}
	return out
}
