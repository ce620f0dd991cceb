// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AccessStatus is the status of a ServiceExportGrant or a ClusterServiceAccessPolicy.
type AccessStatus struct {
	// conditions are Accepted and Enforced.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// The types of conditions.
const (
	// ConditionAccepted: the rule is valid.
	ConditionAccepted = "Accepted"
	// ConditionEnforced: the rule restricts connections with all clusters that it is about.
	ConditionEnforced = "Enforced"
)

// The reasons of conditions.
const (
	// ReasonAccepted: the rule is valid.
	ReasonAccepted = "Accepted"
	// ReasonExportsNotFound: the grant is valid, and names ServiceExports that do not exist.
	ReasonExportsNotFound = "ExportsNotFound"
	// ReasonClustersNotFound: the rule is valid, and names clusters that are no members.
	ReasonClustersNotFound = "ClustersNotFound"
	// ReasonPropertiesNotFound: the rule is valid, and selects clusters by properties that no other member has.
	ReasonPropertiesNotFound = "PropertiesNotFound"
	// ReasonNamespacesNotFound: the policy is valid, and names or selects namespaces that this cluster does not have.
	ReasonNamespacesNotFound = "NamespacesNotFound"
	// ReasonServicesNotFound: the policy is valid, and names services that this cluster does not export, or does not import.
	ReasonServicesNotFound = "ServicesNotFound"
	// ReasonInvalidSelector: the policy has a selector that is not valid.
	ReasonInvalidSelector = "InvalidSelector"
	// ReasonEnforced: the gateways enforce the rule.
	ReasonEnforced = "Enforced"
	// ReasonPartiallyEnforced: the gateways enforce the rule, but pods of some clusters are in the same network.
	ReasonPartiallyEnforced = "PartiallyEnforced"
	// ReasonSameNetwork: all clusters that the rule is about are in the same network.
	ReasonSameNetwork = "SameNetwork"
	// ReasonNoGateway: the cluster has no gateways.
	ReasonNoGateway = "NoGateway"
)
