// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"net"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GatewayName is the name of the one PublishedGateway in a member's namespace.
const GatewayName = "gateway"

// Bounds of a PublishedGateway. The agent that publishes it obeys them; an importer refuses what exceeds them.
const (
	MaxGatewayAddresses = 16
	MaxGatewayBundle    = 16 * 1024
	MaxGatewayVersions  = 8
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=publishedgateways,shortName=pubgw
// +kubebuilder:printcolumn:name="Addresses",type=string,JSONPath=`.spec.addresses[*].host`
// +kubebuilder:printcolumn:name="Versions",type=string,JSONPath=`.spec.versions`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'gateway'",message="a member's namespace has one PublishedGateway, named gateway"

// PublishedGateway says where other members reach the gateways of a member, and by which certificates they recognize them. The member
// writes it.
type PublishedGateway struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PublishedGatewaySpec `json:"spec"`
}

// PublishedGatewaySpec says how to reach the gateways of a member.
type PublishedGatewaySpec struct {
	// addresses are the addresses of the gateways. A member without addresses can import, but not export to other networks.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Addresses []GatewayAddress `json:"addresses,omitempty"`

	// bundle are the certificates of the authorities that sign the member's gateway certificates, as PEM: one, or several while it
	// changes its authority.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +kubebuilder:validation:Pattern=`^(-----BEGIN CERTIFICATE-----\n([A-Za-z0-9+/=]{1,64}\n)+-----END CERTIFICATE-----\n)+$`
	Bundle string `json:"bundle"`

	// versions are the versions of the gateway protocol that the gateways support.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=255
	// +listType=atomic
	Versions []int32 `json:"versions"`
}

// GatewayAddress is an address at which gateways listen.
type GatewayAddress struct {
	// host is an IP address in canonical form, or a DNS name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[0-9a-z]([-0-9a-z.:]*[0-9a-z:])?$`
	Host string `json:"host"`

	// port is the TCP port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}

// String returns host:port, and [host]:port for an IPv6 address.
func (a GatewayAddress) String() string { return net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port))) }

// +kubebuilder:object:root=true

// PublishedGatewayList is a list of PublishedGateways.
type PublishedGatewayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PublishedGateway `json:"items"`
}
