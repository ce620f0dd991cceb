// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// GrantAccepted returns the condition Accepted of a ServiceExportGrant (A1). missing are the names in it of which there is no
// ServiceExport.
func GrantAccepted(missing []policyv1alpha1.ObjectName) metav1.Condition {
	if len(missing) == 0 {
		return condition(policyv1alpha1.ConditionAccepted, metav1.ConditionTrue, policyv1alpha1.ReasonAccepted, "The grant is valid.")
	}
	return condition(policyv1alpha1.ConditionAccepted, metav1.ConditionTrue, policyv1alpha1.ReasonExportsNotFound, fmt.Sprintf(
		"The grant is valid. This namespace has no ServiceExport with the name %s; the grant applies when there is one.", strings.Join(firstTen(missing), ", ")))
}

// PolicyAccepted returns the condition Accepted of a ClusterServiceAccessPolicy (A2). invalid is why it is not valid; nil if it is.
func PolicyAccepted(action policyv1alpha1.Action, invalid error) metav1.Condition {
	if invalid == nil {
		return condition(policyv1alpha1.ConditionAccepted, metav1.ConditionTrue, policyv1alpha1.ReasonAccepted, "The policy is valid.")
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
