// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=serviceexportgrants,shortName=svcexgrant
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Exports",type=string,JSONPath=`.spec.exports`
// +kubebuilder:printcolumn:name="Clusters",type=string,JSONPath=`.spec.to[*].clusters`
// +kubebuilder:printcolumn:name="Namespaces",type=string,JSONPath=`.spec.to[*].namespaces`
// +kubebuilder:printcolumn:name="Accounts",type=string,JSONPath=`.spec.to[*].serviceAccounts`,priority=1
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// ServiceExportGrant says who may use ServiceExports of its namespace. An export that grants select is only for the clients that they name;
// any other export is for the whole clusterset.
type ServiceExportGrant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ServiceExportGrantSpec `json:"spec"`
	// status says whether the grant is valid, and where it is enforced. The agent writes it.
	// +optional
	Status AccessStatus `json:"status,omitzero"`
}

// ServiceExportGrantSpec says which exports are granted to whom.
type ServiceExportGrantSpec struct {
	// exports are the names of the ServiceExports. If unset, these are all of the namespace.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	Exports []ObjectName `json:"exports,omitempty"`

	// to are the clients that may use the exports. One entry must match.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	To []Peer `json:"to"`
}

// +kubebuilder:object:root=true

// ServiceExportGrantList is a list of ServiceExportGrants.
type ServiceExportGrantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ServiceExportGrant `json:"items"`
}
