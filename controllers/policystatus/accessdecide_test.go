// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: A1, A2, A6, W4
func TestConditions(t *testing.T) {
	t.Parallel()
	grant := func(exports ...policyv1alpha1.ObjectName) *policyv1alpha1.ServiceExportGrant {
		return &policyv1alpha1.ServiceExportGrant{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "g"}, Spec: policyv1alpha1.ServiceExportGrantSpec{Exports: exports},
		}
	}
	policy := func(direction policyv1alpha1.Direction, clusters ...policyv1alpha1.ClusterID) *policyv1alpha1.ClusterServiceAccessPolicy {
		p := &policyv1alpha1.ClusterServiceAccessPolicy{Spec: policyv1alpha1.ClusterServiceAccessPolicySpec{Direction: direction}}
		if len(clusters) > 0 {
			p.Spec.Peers = []policyv1alpha1.Peer{{Clusters: clusters}}
		}
		return p
	}
	// near and far are in the network of this cluster, far without publishing addresses; cloud is in another one.
	v := accessView{
		own: "own", hasGateways: true, synced: true, exports: map[types.NamespacedName]bool{{Namespace: "shop", Name: "web"}: true},
		members: map[clusterset.ClusterID]reach.Cluster{
			"own": {}, "near": {}, "far": {Publish: hubv1alpha1.PublishAvailability}, "cloud": {Network: "cloud"},
		},
	}
	without := func(change func(*accessView)) accessView {
		result := v
		change(&result)
		return result
	}
	alone := without(func(v *accessView) { v.members = map[clusterset.ClusterID]reach.Cluster{"own": {}} })
	unsynced := without(func(v *accessView) { v.synced = false })
	noGateway := without(func(v *accessView) { v.hasGateways, v.synced = false, false })
	invalid := policy(policyv1alpha1.DirectionExport, "cloud")
	invalid.Spec.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Likes"}}}
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       []string // reasons, and a part of the message
	}{
		"a grant is about all":                {v.ofGrant(grant("web")), []string{"Accepted", "PartiallyEnforced enforce it for connections with cloud. It does not restrict connections with far, near:"}},
		"exports of the grant do not exist":   {alone.ofGrant(grant("web", "b", "a")), []string{"ExportsNotFound with the name a, b;", "Enforced about no other member"}},
		"exports to clusters":                 {v.ofPolicy(policy("Export", "cloud")), []string{"Accepted", "Enforced with cloud."}},
		"imports from all":                    {v.ofPolicy(policy("Import")), []string{"Accepted", "PartiallyEnforced with cloud, far. It does not restrict connections with near:"}},
		"imports from one that is not direct": {v.ofPolicy(policy("Import", "far", "own")), []string{"Accepted", "Enforced with far."}},
		"exports to one in the network":       {v.ofPolicy(policy("Export", "far")), []string{"Accepted", "SameNetwork with far:"}},
		"an invalid selector":                 {v.ofPolicy(invalid), []string{"InvalidSelector spec.namespaceSelector:", "Enforced with cloud."}},
		"members are not known":               {unsynced.ofGrant(grant()), []string{"Accepted"}},
		"no gateways":                         {noGateway.ofGrant(grant()), []string{"Accepted", "NoGateway"}},
	} {
		var got []string
		for i, c := range test.conditions {
			text := c.Reason
			if len(test.want) > i {
				if _, part, _ := strings.Cut(test.want[i], " "); strings.Contains(c.Message, part) {
					text = strings.TrimSpace(c.Reason + " " + part)
				} else {
					text += ": " + c.Message
				}
			}
			got = append(got, text)
		}
		check.Equal(t, name, test.want, got)
	}
}
