// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=remotegateways,shortName=remgw
// +kubebuilder:printcolumn:name="Addresses",type=string,JSONPath=`.spec.addresses[*].host`
// +kubebuilder:printcolumn:name="Versions",type=string,JSONPath=`.spec.versions`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == self.spec.cluster",message="the name is the ID of the cluster"

// RemoteGateway says how the gateways of this cluster reach and recognize the gateways of another member. Its name is the ID of the member.
// The agent writes it from the PublishedGateway on the hub, so that gateways work if the hub or the agent is down. Members that are
// suspended, have left, or may not use their addresses have none.
type RemoteGateway struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RemoteGatewaySpec `json:"spec"`
}

// RemoteGatewaySpec says how to reach and recognize the gateways of another member.
type RemoteGatewaySpec struct {
	// cluster is the ID of the member.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=56
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Cluster string `json:"cluster"`

	// addresses are the addresses of the gateways of the member, as published and as the hub's administrator allows. If there are none,
	// the gateways of the member connect to the gateways of this cluster, but not the other way round.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Addresses []Address `json:"addresses,omitempty"`

	// refusedRanges are the ranges of the pods and Services of this cluster. The addresses must not be in them, also after a DNS name is
	// resolved.
	// +optional
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=43
	// +listType=atomic
	RefusedRanges []string `json:"refusedRanges,omitempty"`

	// ownRanges are the ranges of this cluster, in which the gateways find the backends of its exports. An agent of an earlier version
	// leaves it unset.
	// +optional
	OwnRanges *OwnRanges `json:"ownRanges,omitempty"`

	// bundle are the certificates of the authorities that sign the certificates of its gateways, as PEM.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Bundle string `json:"bundle"`

	// versions are the versions of the gateway protocol that its gateways support.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=255
	// +listType=atomic
	Versions []int32 `json:"versions"`

	// properties are the properties of the member, which rules about access refer to. If unset, they are not known.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +mapType=atomic
	Properties map[string]PropertyValue `json:"properties,omitzero"`
}

// OwnRanges are the ranges of the cluster of the gateways.
type OwnRanges struct {
	// pods are the address ranges of the pods of this cluster, as its Member says. Gateways connect to addresses in these ranges, and to
	// pods in the host network.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=49
	// +listType=atomic
	Pods []string `json:"pods"`

	// nodes are the address ranges of the nodes of this cluster, as its Member says.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=49
	// +listType=atomic
	Nodes []string `json:"nodes,omitempty"`

	// services are the address ranges of the Services of this cluster. Gateways connect to no address in these ranges.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=49
	// +listType=atomic
	Services []string `json:"services,omitempty"`
}

// PropertyValue is the value of a property of a cluster.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
type PropertyValue string

// Address is an address at which gateways listen.
type Address struct {
	// host is an IP address in canonical form, or a DNS name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`

	// port is the TCP port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}

// +kubebuilder:object:root=true

// RemoteGatewayList is a list of RemoteGateways.
type RemoteGatewayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RemoteGateway `json:"items"`
}
