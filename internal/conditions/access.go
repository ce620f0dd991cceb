// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Missing are the names in a rule about access that nothing has. The rule does what it says, but matches nothing by these names (A6).
type Missing struct {
	// Exports are ServiceExports of the namespace of a grant. Services are those of a policy that this cluster does not export or import.
	Exports, Services []string
	// Clusters are the IDs that no member has. Properties are the selectors that no other member matches.
	Clusters, Properties []string
	// Namespaces are those of clients in this cluster. NoNamespace is set if the selector of a policy matches no namespace.
	Namespaces  []string
	NoNamespace bool
	// Unread is set if it is not known which members there are, because the hub has not been read.
	Unread bool
}

// accepted returns the condition Accepted of a valid rule. The first kind of missing names is the reason.
func (m Missing) accepted(valid string) metav1.Condition {
	result := condition(policyv1alpha1.ConditionAccepted, metav1.ConditionTrue, policyv1alpha1.ReasonAccepted, valid)
	for _, s := range m.sentences() {
		if result.Reason == policyv1alpha1.ReasonAccepted {
			result.Reason = s.reason
		}
		result.Message += " " + s.text
	}
	result.Message = shortenTo(result.Message, maxMessage)
	return result
}

func (m Missing) sentences() []remark {
	var result []remark
	add := func(reason, format string, names []string) {
		if len(names) > 0 {
			slices.Sort(names)
			result = append(result, remark{reason, fmt.Sprintf(format, strings.Join(firstTen(slices.Compact(names)), ", "))})
		}
	}
	add(policyv1alpha1.ReasonExportsNotFound, "This namespace has no ServiceExport with the name %s; the grant applies when there is one.", slices.Clone(m.Exports))
	add(policyv1alpha1.ReasonClustersNotFound, "No member has the cluster ID %s; the rule matches no client of such a cluster until it is a member.", slices.Clone(m.Clusters))
	add(policyv1alpha1.ReasonPropertiesNotFound, "No other member has the properties %s in its Member on the hub.", slices.Clone(m.Properties))
	add(policyv1alpha1.ReasonNamespacesNotFound, "This cluster has no namespace %s.", slices.Clone(m.Namespaces))
	if m.NoNamespace {
		result = append(result, remark{policyv1alpha1.ReasonNamespacesNotFound, "No namespace of this cluster has the labels of spec.namespaceSelector."})
	}
	add(policyv1alpha1.ReasonServicesNotFound, "In the selected namespaces, this cluster has no such service with the name %s.", slices.Clone(m.Services))
	if m.Unread {
		result = append(result, remark{policyv1alpha1.ReasonAccepted, "It is not known yet whether its clusters are members, because the hub has not been read."})
	}
	return result
}

// GrantAccepted returns the condition Accepted of a ServiceExportGrant (A1).
func GrantAccepted(missing Missing) metav1.Condition { return missing.accepted("The grant is valid.") }

// PolicyAccepted returns the condition Accepted of a ClusterServiceAccessPolicy (A2). invalid is why it is not valid; nil if it is.
func PolicyAccepted(action policyv1alpha1.Action, invalid error, missing Missing) metav1.Condition {
	if invalid == nil {
		return missing.accepted("The policy is valid.")
	}
	effect := "Until then, the policy denies its peers the services of all namespaces."
	if action == policyv1alpha1.ActionAccept {
		effect = "Until then, the policy has no effect."
	}
	return condition(policyv1alpha1.ConditionAccepted, metav1.ConditionFalse, policyv1alpha1.ReasonInvalidSelector,
		fmt.Sprintf("%v: correct the selector. %s", invalid, effect))
}

// Enforcement is where a rule about access is enforced.
type Enforcement struct {
	// HasGateways is set if this cluster has gateways.
	HasGateways bool
	// Direct and ThroughGateways are the other members that the rule is about, sorted, by how this cluster's pods and theirs reach each
	// other.
	Direct, ThroughGateways []clusterset.ClusterID
}

// Enforced returns the condition Enforced of a rule about access: gateways enforce it, so it restricts no connections between pods that
// reach each other directly (A1).
func Enforced(e Enforcement) metav1.Condition {
	through, direct := strings.Join(firstTen(e.ThroughGateways), ", "), strings.Join(firstTen(e.Direct), ", ")
	unrestricted := fmt.Sprintf("It does not restrict connections with %s: the pods reach each other directly, and only NetworkPolicies can restrict them.", direct)
	enforced := fmt.Sprintf("The gateways of this cluster enforce it for connections with %s.", through)
	status, reason, message := metav1.ConditionTrue, policyv1alpha1.ReasonEnforced, enforced
	switch {
	case !e.HasGateways:
		status, reason = metav1.ConditionFalse, policyv1alpha1.ReasonNoGateway
		message = "This cluster has no gateways, and nothing else enforces the rule: install gateways, or use NetworkPolicies."
	case direct != "" && through != "":
		status, reason, message = metav1.ConditionFalse, policyv1alpha1.ReasonPartiallyEnforced, enforced+" "+unrestricted
	case direct != "":
		status, reason, message = metav1.ConditionFalse, policyv1alpha1.ReasonSameNetwork, unrestricted
	case through == "":
		message = "The gateways of this cluster enforce it. At present, it is about no other member."
	}
	return condition(policyv1alpha1.ConditionEnforced, status, reason, message)
}
