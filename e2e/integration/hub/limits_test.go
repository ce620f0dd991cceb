// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// The largest record that the schema admits, of the member with the most CIDRs, keeps within the limits of CEL, wherever
// its addresses are, and whether it is accepted or refused.
func (h *hub) testLimits(t *testing.T) {
	m := h.join(t, manifests.MemberOptions{
		ClusterID: "large",
		PodCIDRs:  prefixes(append(manyCIDRs(63, 0), "fd00:aaaa:aaaa:aaaa:aaaa::/80")...),
		NodeCIDRs: prefixes(append(manyCIDRs(63, 100), "fd00:bbbb:bbbb:bbbb:bbbb::/80")...),
	})
	const tooMany = "the groups have more than 1000 addresses in all: spread the endpoints over several records"
	for name, tc := range map[string]struct {
		prefix         string
		groups, inEach int
		want           string
	}{
		"in the last podCIDR, one group":         {"fd00:aaaa:aaaa:aaaa:aaaa:1111:2222", 1, 1000, ""},
		"in the last podCIDR, 100 groups":        {"fd00:aaaa:aaaa:aaaa:aaaa:1111:2222", 100, 10, ""},
		"in the last nodeCIDR, one group":        {"fd00:bbbb:bbbb:bbbb:bbbb:1111:2222", 1, 1000, ""},
		"in the last nodeCIDR, 100 groups":       {"fd00:bbbb:bbbb:bbbb:bbbb:1111:2222", 100, 10, ""},
		"outside all CIDRs, one group":           {"fd00:cccc:cccc:cccc:cccc:1111:2222", 1, 1000, "address fd00:cccc:cccc:cccc:cccc:1111:2222:1000 is outside the podCIDRs and nodeCIDRs of the Member of cluster large"},
		"outside all CIDRs, 100 groups":          {"fd00:cccc:cccc:cccc:cccc:1111:2222", 100, 10, "address fd00:cccc:cccc:cccc:cccc:1111:2222:1000 is outside the podCIDRs and nodeCIDRs of the Member of cluster large"},
		"link-local, one group":                  {"fe80:cccc:cccc:cccc:cccc:1111:2222", 1, 1000, "address fe80:cccc:cccc:cccc:cccc:1111:2222:1000 is loopback, link-local"},
		"link-local, 100 groups":                 {"fe80:cccc:cccc:cccc:cccc:1111:2222", 100, 10, "address fe80:cccc:cccc:cccc:cccc:1111:2222:1000 is loopback, link-local"},
		"not canonical, one group":               {"FD00:aaaa:aaaa:aaaa:aaaa:1111:2222", 1, 1000, `address "FD00:aaaa:aaaa:aaaa:aaaa:1111:2222:1000" is no IP address in canonical form`},
		"not canonical, 100 groups":              {"FD00:aaaa:aaaa:aaaa:aaaa:1111:2222", 100, 10, `address "FD00:aaaa:aaaa:aaaa:aaaa:1111:2222:1000" is no IP address in canonical form`},
		"1002 addresses in two groups":           {"fd00:aaaa:aaaa:aaaa:aaaa:1111:2222", 2, 501, tooMany},
		"1001 addresses in one group":            {"fd00:aaaa:aaaa:aaaa:aaaa:1111:2222", 1, 1001, "spec.groups[0].addresses: Too many: 1001: must have at most 1000 items"},
		"101 groups":                             {"fd00:aaaa:aaaa:aaaa:aaaa:1111:2222", 101, 1, "spec.groups: Too many: 101: must have at most 100 items"},
		"as many as fit in a request, 50 of 700": {"fd00:cccc:cccc:cccc:cccc:1111:2222", 50, 700, tooMany},
	} {
		t.Run(name, func(t *testing.T) {
			record := m.endpoints(func(e *hubv1alpha1.PublishedEndpoints) {
				e.Spec.AddressType, e.Spec.Groups = "IPv6", nil
				for g := range tc.groups {
					group := hubv1alpha1.EndpointGroup{Zone: strings.Repeat("z", 63), Ready: new(true), Serving: new(true), Terminating: new(false)}
					for i := range tc.inEach {
						group.Addresses = append(group.Addresses, hubv1alpha1.IPAddress(fmt.Sprintf("%s:%x", tc.prefix, 0x1000+g*tc.inEach+i)))
						group.Hostnames = append(group.Hostnames, hubv1alpha1.Hostname(fmt.Sprintf("host-%d", i)))
					}
					e.Spec.Groups = append(e.Spec.Groups, group)
				}
			})
			content, err := json.Marshal(record)
			lab.Must(t, err)
			t.Logf("%d bytes", len(content))
			tryNew(t, m, record, tc.want)
		})
	}
}

// manyCIDRs returns IPv6 CIDRs that differ in their last bits, which makes them the dearest to compare.
func manyCIDRs(n, from int) []hubv1alpha1.CIDR {
	var out []hubv1alpha1.CIDR
	for i := range n {
		out = append(out, hubv1alpha1.CIDR(fmt.Sprintf("fd00:cccc:cccc:cccc:cccc:1111:3333:%x/128", 0x1000+from+i)))
	}
	return out
}

func (h *hub) testQuota(t *testing.T) {
	m := h.join(t, manifests.MemberOptions{ClusterID: "small", PodCIDRs: prefixes("10.1.0.0/16"), MaxServices: 2, MaxEndpoints: 1})
	first, second := m.service(), m.service(inNamespace("second"))
	checkError(t, m.Create(t.Context(), first), "")
	checkError(t, m.Create(t.Context(), second), "")
	checkError(t, m.Create(t.Context(), m.service(inNamespace("third"))),
		"exceeded quota: tombolo, requested: count/publishedservices.hub.tombolo-mcs.io=1, used: count/publishedservices.hub.tombolo-mcs.io=2, limited: count/publishedservices.hub.tombolo-mcs.io=2")
	checkError(t, m.Create(t.Context(), m.endpoints()), "")
	checkError(t, m.Create(t.Context(), m.endpoints(func(e *hubv1alpha1.PublishedEndpoints) { e.Name = "shop.web.0000000002" })),
		"exceeded quota: tombolo, requested: count/publishedendpoints.hub.tombolo-mcs.io=1")
	// Updates need none, and a deletion makes room.
	first.Spec.TrafficDistribution = corev1.ServiceTrafficDistributionPreferClose
	checkError(t, m.Update(t.Context(), first), "")
	checkError(t, m.Delete(t.Context(), second), "")
	world.Eventually(t, func(ctx context.Context) error {
		return m.Create(ctx, m.service(inNamespace("third")))
	})
	// The others have quotas of their own.
	tryNew(t, h.a, h.a.service(), "")
}

// traces returns all objects of the cluster that are in a namespace, or have a name, with this text.
func (h *hub) traces(t *testing.T, text string) []string {
	t.Helper()
	return slices.DeleteFunc(membership.Traces(t, h.cluster), func(trace string) bool { return !strings.Contains(trace, text) })
}
