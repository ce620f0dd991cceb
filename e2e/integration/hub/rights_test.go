// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// requests are what a verb is in HTTP, for an object that does not exist and with a body that is none: whoever may do it
// gets another error than "forbidden".
var requests = map[string]struct{ method, suffix string }{
	"get":              {http.MethodGet, "/none"},
	"list":             {http.MethodGet, ""},
	"watch":            {http.MethodGet, "?watch=true&timeoutSeconds=1"},
	"create":           {http.MethodPost, ""},
	"update":           {http.MethodPut, "/none"},
	"patch":            {http.MethodPatch, "/none"},
	"delete":           {http.MethodDelete, "/none"},
	"deletecollection": {http.MethodDelete, ""},
}

// Each verb of each resource that the API server has is tried in the member's own namespace, in another member's, in one
// of Kubernetes' own, and in all at once. Whatever is not forbidden is on this list.
func (h *hub) testRights(t *testing.T) {
	reads := []string{"list", "watch"}
	own := map[string][]string{
		"publishedservices":  {"create", "delete", "get", "update"},
		"publishedendpoints": {"create", "delete", "get", "update"},
		"publishedgateways":  {"create", "delete", "get", "update"},
		"heartbeats":         {"create", "get", "update"},
		"members":            nil,
	}
	want := map[string][]string{
		// Every authenticated user may ask what it may do.
		"anywhere selfsubjectaccessreviews": {"create"},
		"anywhere selfsubjectreviews":       {"create"},
		"anywhere selfsubjectrulesreviews":  {"create"},
	}
	for resource, verbs := range own {
		want["member-a "+resource] = slices.Concat(verbs, reads)
		want["member-b "+resource] = reads
		want["kube-system "+resource] = reads
		want["anywhere "+resource] = []string{"list", "watch"}
	}
	for _, verbs := range want {
		slices.Sort(verbs)
	}
	got := h.notForbidden(t, h.a)
	lab.Equal(t, "rights", want, got)
}

// notForbidden returns the verbs that a member may use, by place and resource.
func (h *hub) notForbidden(t *testing.T, m *member) map[string][]string {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(m.config)
	lab.Must(t, err)
	got := map[string][]string{}
	tried := 0
	for _, list := range h.resources(t) {
		for _, resource := range list.APIResources {
			for place, prefix := range places(list.GroupVersion, resource) {
				for _, verb := range resource.Verbs {
					path, possible := pathOf(prefix, resource, verb)
					if !possible || place == "anywhere" && resource.Namespaced && !slices.Contains([]string{"list", "watch"}, verb) {
						continue
					}
					tried++
					if status(t, httpClient, requests[verb].method, m.config.Host+path) != http.StatusForbidden {
						got[place+" "+resource.Name] = append(got[place+" "+resource.Name], verb)
					}
				}
			}
		}
	}
	for key := range got {
		slices.Sort(got[key])
	}
	if tried < 1000 {
		t.Errorf("only %d acts were tried", tried)
	}
	return got
}

// places returns where a resource can be addressed, and the path up to there.
func places(groupVersion string, resource metav1.APIResource) map[string]string {
	root := "/apis/" + groupVersion
	if groupVersion == "v1" {
		root = "/api/v1"
	}
	out := map[string]string{"anywhere": root}
	if resource.Namespaced {
		for _, namespace := range []string{"member-a", "member-b", "kube-system"} {
			out[namespace] = root + "/namespaces/" + namespace
		}
	}
	return out
}

// pathOf returns the path of a request, and whether there is one.
func pathOf(prefix string, resource metav1.APIResource, verb string) (string, bool) {
	request, known := requests[verb]
	if name, sub, isSub := strings.Cut(resource.Name, "/"); isSub {
		return prefix + "/" + name + "/none/" + sub, known
	}
	return prefix + "/" + resource.Name + request.suffix, known
}

// resources returns all that the API server has, subresources included.
func (h *hub) resources(t *testing.T) []*metav1.APIResourceList {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(h.cluster.Config())
	lab.Must(t, err)
	_, all, err := client.ServerGroupsAndResources()
	lab.Must(t, err)
	return all
}

// status returns the HTTP status with which a request is answered.
func status(t *testing.T, c *http.Client, method, url string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), world.Within)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	lab.Must(t, err)
	response, err := c.Do(request)
	lab.Must(t, err)
	response.Body.Close()
	return response.StatusCode
}

// spec: K2
func (h *hub) testMembers(t *testing.T) {
	good := func() *hubv1alpha1.Member {
		return world.Read(t, h.admin, world.Key{Namespace: h.a.namespace, Name: hubv1alpha1.MemberName}, &hubv1alpha1.Member{})
	}
	for name, tc := range map[string]struct {
		change func(*hubv1alpha1.Member)
		want   string
	}{
		"as it is":             {func(*hubv1alpha1.Member) {}, ""},
		"more pods":            {func(m *hubv1alpha1.Member) { m.Spec.PodCIDRs = append(m.Spec.PodCIDRs, "10.9.0.0/16") }, ""},
		"trusted":              {func(m *hubv1alpha1.Member) { m.Spec.ClaimedAges = hubv1alpha1.ClaimedAgesTrusted }, ""},
		"another ID":           {func(m *hubv1alpha1.Member) { m.Spec.ClusterID = "c" }, "a cluster ID never changes: let the cluster leave, and join under the new ID"},
		"no CIDR":              {func(m *hubv1alpha1.Member) { m.Spec.PodCIDRs[0] = "10.1.0.0" }, "must be a CIDR such as 10.0.0.0/16 or fd00::/48"},
		"an IPv4-mapped CIDR":  {func(m *hubv1alpha1.Member) { m.Spec.PodCIDRs[0] = "::ffff:10.1.0.0/112" }, "must be a CIDR such as 10.0.0.0/16 or fd00::/48"},
		"no pods":              {func(m *hubv1alpha1.Member) { m.Spec.PodCIDRs = nil }, "spec.podCIDRs"},
		"65 CIDRs":             {func(m *hubv1alpha1.Member) { m.Spec.NodeCIDRs = manyCIDRs(65, 0) }, "spec.nodeCIDRs: Too many: 65: must have at most 64 items"},
		"namespace is no name": {func(m *hubv1alpha1.Member) { m.Spec.Namespaces = []hubv1alpha1.NamespaceName{"A"} }, "spec.namespaces[0]: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			before := good()
			m := before.DeepCopy()
			tc.change(m)
			checkError(t, h.admin.Update(t.Context(), m), tc.want)
			if tc.want == "" {
				m.Spec = before.Spec
				checkError(t, h.admin.Update(t.Context(), m), "")
			}
		})
	}
	for name, tc := range map[string]struct{ namespace, name, id, want string }{
		"a second one":               {"member-a", "member2", "a", "a member's namespace has one Member, named member"},
		"the ID of another":          {"default", "member", "a", "the Member of cluster a belongs in namespace member-a, not in default"},
		"namespace of another":       {"kube-public", "member", "public", "the Member of cluster public belongs in namespace member-public, not in kube-public"},
		"ID is no DNS label":         {"default", "member", "A", "spec.clusterID: Invalid value"},
		"ID of 57 characters":        {"default", "member", longDomain(49) + "aaaaaaaa", "spec.clusterID: Too long"},
		"twice in its own namespace": {"member-a", "member", "a", "already exists"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &hubv1alpha1.Member{}
			m.Namespace, m.Name, m.Spec = tc.namespace, tc.name, good().Spec
			m.Spec.ClusterID = tc.id
			checkError(t, h.admin.Create(t.Context(), m), tc.want)
		})
	}
}
