// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: A1, A2, A6
func TestAccessConditions(t *testing.T) {
	t.Parallel()
	invalid := errors.New("ClusterServiceAccessPolicy p: spec.namespaceSelector: no")
	east, west := []clusterset.ClusterID{"east"}, []clusterset.ClusterID{"north", "west"}
	for name, test := range map[string]struct {
		got, want metav1.Condition
	}{
		"a grant": {
			conditions.GrantAccepted(conditions.Missing{}),
			conditionOf("Accepted", "True", "Accepted", "The grant is valid."),
		},
		"a grant of exports that do not exist": {
			conditions.GrantAccepted(conditions.Missing{Exports: []string{"web", "api"}}),
			conditionOf("Accepted", "True", "ExportsNotFound",
				"The grant is valid. This namespace has no ServiceExport with the name api, web; the grant applies when there is one."),
		},
		"a grant to clusters that are no members": {
			conditions.GrantAccepted(conditions.Missing{Clusters: []string{"zz", "yy"}, Properties: []string{"region=eu"}}),
			conditionOf("Accepted", "True", "ClustersNotFound", "The grant is valid. No member has the cluster ID yy, zz; the rule matches no client of such a cluster until it is a member. "+
				"No other member has the properties region=eu in its Member on the hub."),
		},
		"a grant before the hub was read": {
			conditions.GrantAccepted(conditions.Missing{Unread: true}),
			conditionOf("Accepted", "True", "Accepted", "The grant is valid. It is not known yet whether its clusters are members, because the hub has not been read."),
		},
		"a policy with missing names": {
			conditions.PolicyAccepted("Deny", nil, conditions.Missing{Namespaces: []string{"shpo"}, NoNamespace: true, Services: []string{"wbe"}}),
			conditionOf("Accepted", "True", "NamespacesNotFound", "The policy is valid. This cluster has no namespace shpo. No namespace of this cluster has the labels of spec.namespaceSelector. "+
				"In the selected namespaces, this cluster has no such service with the name wbe."),
		},
		"a policy": {
			conditions.PolicyAccepted("Deny", nil, conditions.Missing{}),
			conditionOf("Accepted", "True", "Accepted", "The policy is valid."),
		},
		"an invalid policy that denies": {
			conditions.PolicyAccepted("Deny", invalid, conditions.Missing{}),
			conditionOf("Accepted", "False", "InvalidSelector",
				"ClusterServiceAccessPolicy p: spec.namespaceSelector: no: correct the selector. Until then, the policy denies its peers the services of all namespaces."),
		},
		"an invalid policy that accepts": {
			conditions.PolicyAccepted("Accept", invalid, conditions.Missing{}),
			conditionOf("Accepted", "False", "InvalidSelector",
				"ClusterServiceAccessPolicy p: spec.namespaceSelector: no: correct the selector. Until then, the policy has no effect."),
		},
		"no gateways": {
			conditions.Enforced(conditions.Enforcement{Direct: east, ThroughGateways: west}),
			conditionOf("Enforced", "False", "NoGateway",
				"This cluster has no gateways, and nothing else enforces the rule: install gateways, or use NetworkPolicies."),
		},
		"no other member": {
			conditions.Enforced(conditions.Enforcement{HasGateways: true}),
			conditionOf("Enforced", "True", "Enforced",
				"The gateways of this cluster enforce it. At present, it is about no other member."),
		},
		"other networks": {
			conditions.Enforced(conditions.Enforcement{HasGateways: true, ThroughGateways: west}),
			conditionOf("Enforced", "True", "Enforced", "The gateways of this cluster enforce it for connections with north, west."),
		},
		"the same network": {
			conditions.Enforced(conditions.Enforcement{HasGateways: true, Direct: east}),
			conditionOf("Enforced", "False", "SameNetwork",
				"It does not restrict connections with east: the pods reach each other directly, and only NetworkPolicies can restrict them."),
		},
		"both": {
			conditions.Enforced(conditions.Enforcement{HasGateways: true, Direct: east, ThroughGateways: west}),
			conditionOf("Enforced", "False", "PartiallyEnforced",
				"The gateways of this cluster enforce it for connections with north, west. "+
					"It does not restrict connections with east: the pods reach each other directly, and only NetworkPolicies can restrict them."),
		},
	} {
		check.Equal(t, name, test.want, test.got)
	}
}
