// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterserviceaccesspolicies,scope=Cluster,shortName=csap
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Tier",type=string,JSONPath=`.spec.tier`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.spec.action`
// +kubebuilder:printcolumn:name="Direction",type=string,JSONPath=`.spec.direction`
// +kubebuilder:printcolumn:name="Services",type=string,JSONPath=`.spec.services`,priority=1
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// ClusterServiceAccessPolicy is a rule of the cluster's administrator. Of the policies that match a connection, the first decides: the tier
// Admin comes before ServiceExportGrants, the tier Baseline after them, and smaller priorities before larger ones. Without a match, the
// connection is accepted. Both clusters must accept it.
type ClusterServiceAccessPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterServiceAccessPolicySpec `json:"spec"`
	// status says whether the policy is valid, and where it is enforced. The agent writes it.
	// +optional
	Status AccessStatus `json:"status,omitzero"`
}

// ClusterServiceAccessPolicySpec is a rule.
type ClusterServiceAccessPolicySpec struct {
	// tier is Admin (before ServiceExportGrants) or Baseline (after them).
	Tier Tier `json:"tier"`

	// priority orders the policies of a tier, the smallest first. Of policies with equal priority, policies that deny come first.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Priority int32 `json:"priority"`

	// direction is Export for connections from other clusters to services that this cluster exports, and Import for connections from this
	// cluster's pods to services that it imports.
	Direction Direction `json:"direction"`

	// namespaceSelector selects the namespaces of the services by their labels in this cluster. If unset, these are all.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// services are the names of the services. If unset, these are all in the selected namespaces.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	Services []ObjectName `json:"services,omitempty"`

	// peers are the clients; one entry must match. If unset, these are all, also unknown ones.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Peers []Peer `json:"peers,omitempty"`

	// action is Accept, Deny, or Pass: leave the decision to what comes after the tier.
	Action Action `json:"action"`
}

// Tier says whether a policy comes before or after the ServiceExportGrants.
// +kubebuilder:validation:Enum=Admin;Baseline
type Tier string

// The tiers.
const (
	TierAdmin    Tier = "Admin"
	TierBaseline Tier = "Baseline"
)

// Direction is the direction of connections, as this cluster sees them.
// +kubebuilder:validation:Enum=Export;Import
type Direction string

// The directions.
const (
	DirectionExport Direction = "Export"
	DirectionImport Direction = "Import"
)

// Action is what happens to connections that match.
// +kubebuilder:validation:Enum=Accept;Deny;Pass
type Action string

// The actions.
const (
	ActionAccept Action = "Accept"
	ActionDeny   Action = "Deny"
	ActionPass   Action = "Pass"
)

// +kubebuilder:object:root=true

// ClusterServiceAccessPolicyList is a list of ClusterServiceAccessPolicies.
type ClusterServiceAccessPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterServiceAccessPolicy `json:"items"`
}
