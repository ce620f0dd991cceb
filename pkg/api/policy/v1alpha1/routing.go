// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=serviceimportroutingpolicies,shortName=sirp
// +kubebuilder:printcolumn:name="Imports",type=string,JSONPath=`.spec.imports`
// +kubebuilder:printcolumn:name="Sources",type=string,JSONPath=`.spec.sources`,priority=1
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// ServiceImportRoutingPolicy says which clusters serve the ServiceImports of its namespace in this cluster. For each port, the first of its
// sources with an available endpoint serves. If several policies select an import, the oldest decides, of equal age by name. Headless
// imports have no policy.
type ServiceImportRoutingPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ServiceImportRoutingPolicySpec `json:"spec"`

	// status says whether the policy is in effect. The agent writes it.
	// +optional
	Status ServiceImportRoutingPolicyStatus `json:"status,omitempty"`
}

// ServiceImportRoutingPolicySpec says which sources serve which imports.
type ServiceImportRoutingPolicySpec struct {
	// imports are the names of the ServiceImports. If unset, these are all of the namespace.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	Imports []ObjectName `json:"imports,omitempty"`

	// sources are the clusters that serve, the preferred ones first. A cluster that no source matches never serves.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="!self.exists(s, has(s.any)) || (self.exists_one(s, has(s.any)) && has(self[size(self)-1].any))",message="any must be the last source: none after it would ever serve"
	// +listType=atomic
	Sources []Source `json:"sources"`
}

// Source matches clusters. It has exactly one field.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type Source struct {
	// sameCluster matches this cluster itself.
	// +optional
	// +kubebuilder:validation:Enum=true
	SameCluster bool `json:"sameCluster,omitempty"`

	// sameProperty is the name of a property, such as region: it matches the clusters with the same value as this cluster, and this cluster.
	// If this cluster does not have the property, it matches no cluster.
	// +optional
	SameProperty PropertyName `json:"sameProperty,omitempty"`

	// clusters are the IDs of the clusters.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +listType=set
	Clusters []ClusterID `json:"clusters,omitempty"`

	// propertySelector matches the clusters with these properties.
	// +optional
	PropertySelector *PropertySelector `json:"propertySelector,omitempty"`

	// any matches all clusters.
	// +optional
	// +kubebuilder:validation:Enum=true
	Any bool `json:"any,omitempty"`
}

// PropertySelector matches clusters by their properties. The field has the form that KEP-5939 defines.
type PropertySelector struct {
	// matchProperties are the properties that a cluster must have, all of them.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +mapType=atomic
	MatchProperties map[string]PropertyValue `json:"matchProperties"`
}

// PropertyName is the name of a property of a cluster, as in its Member.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
type PropertyName string

// PropertyValue is the value of a property of a cluster.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
type PropertyValue string

// ServiceImportRoutingPolicyStatus says whether a policy is in effect.
type ServiceImportRoutingPolicyStatus struct {
	// conditions has the condition Accepted.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true

// ServiceImportRoutingPolicyList is a list of ServiceImportRoutingPolicies.
type ServiceImportRoutingPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ServiceImportRoutingPolicy `json:"items"`
}
