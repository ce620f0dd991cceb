// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Peer matches clients. A client matches if it matches all fields that are set.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.serviceAccounts) || has(self.namespaces)",message="serviceAccounts needs namespaces: an account's name says little without its namespace"
type Peer struct {
	// clusters are the IDs of the clusters at the other end: the client's if a service is exported, the exporter's if it is imported.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +listType=set
	Clusters []ClusterID `json:"clusters,omitempty"`

	// propertySelector matches the clusters at the other end by their properties, which the hub's administrator sets.
	// +optional
	PropertySelector *PropertySelector `json:"propertySelector,omitempty"`

	// namespaces are the namespaces of the client's pod.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	Namespaces []NamespaceName `json:"namespaces,omitempty"`

	// serviceAccounts are the names of the service account of the client's pod, in any of namespaces.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	ServiceAccounts []ObjectName `json:"serviceAccounts,omitempty"`
}

// ClusterID is the ID of a cluster (KEP-2149).
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=56
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type ClusterID string

// NamespaceName is the name of a Kubernetes namespace.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type NamespaceName string

// ObjectName is the name of a Service or of a service account.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
type ObjectName string
