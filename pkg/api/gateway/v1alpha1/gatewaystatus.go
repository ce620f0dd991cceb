// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Bounds of a GatewayStatus. The gateway that writes it obeys them.
const (
	MaxReportedClusters = 1000
	MaxReachabilityText = 256
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=gatewaystatuses
// +kubebuilder:printcolumn:name="Addresses",type=string,JSONPath=`.report.addresses[*]`
// +kubebuilder:printcolumn:name="Versions",type=string,JSONPath=`.report.versions`
// +kubebuilder:printcolumn:name="Unreachable",type=string,JSONPath=`.report.clusters[?(@.reachable==false)].cluster`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// GatewayStatus is what one gateway of this cluster reports. Its name is the name of the gateway's pod, which owns it. Only that pod writes
// it.
type GatewayStatus struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Report GatewayReport `json:"report"`
}

// GatewayReport is what a gateway reports.
type GatewayReport struct {
	// addresses are the IP addresses of the gateway's pod, in canonical form. The endpoints of the gateway have the same addresses.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=45
	// +listType=atomic
	Addresses []string `json:"addresses"`

	// versions are the versions of the gateway protocol that the gateway supports.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=255
	// +listType=atomic
	Versions []int32 `json:"versions"`

	// clusters are the other clusters with which the gateway has tried to connect, sorted.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	Clusters []ClusterReachability `json:"clusters,omitempty"`
}

// ClusterReachability says whether a gateway reaches the gateways of another cluster.
type ClusterReachability struct {
	// cluster is the ID of the other cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=56
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Cluster string `json:"cluster"`

	// reachable is true if the gateway has connected to one of the cluster's gateways, and no later attempt has failed.
	Reachable bool `json:"reachable"`

	// reason is why the cluster is unreachable, in CamelCase.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^([A-Z][A-Za-z0-9]*)?$`
	Reason string `json:"reason,omitempty"`

	// message is the reason for people, and what to do.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`

	// since is the time of the last change of reachable.
	Since metav1.Time `json:"since"`
}

// +kubebuilder:object:root=true

// GatewayStatusList is a list of GatewayStatuses.
type GatewayStatusList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GatewayStatus `json:"items"`
}
