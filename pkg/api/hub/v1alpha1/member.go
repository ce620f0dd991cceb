// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Bounds of the properties of a Member: their number, and the characters of a value.
const (
	MaxProperties          = 32
	MaxPropertyValueLength = 253
)

// MemberName is the name of the one Member in a member's namespace. The hub's admission policies take it as their
// parameter.
const MemberName = "member"

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=members
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterID`
// +kubebuilder:printcolumn:name="Network",type=string,JSONPath=`.spec.network`
// +kubebuilder:printcolumn:name="Pod CIDRs",type=string,JSONPath=`.spec.podCIDRs`
// +kubebuilder:printcolumn:name="Node CIDRs",type=string,JSONPath=`.spec.nodeCIDRs`,priority=1
// +kubebuilder:printcolumn:name="Service CIDRs",type=string,JSONPath=`.spec.serviceCIDRs`,priority=1
// +kubebuilder:printcolumn:name="Ages",type=string,JSONPath=`.spec.claimedAges`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'member'",message="a member's namespace has one Member, named member"

// Member admits a cluster to the clusterset. The hub's administrator writes it; the member itself may only read it.
type Member struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MemberSpec `json:"spec"`
}

// MemberSpec says who a member is and what it may announce.
type MemberSpec struct {
	// clusterID is the member's ID (KEP-2149), unique in the clusterset and the same for as long as it is a member.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=56
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a cluster ID never changes: let the cluster leave, and join under the new ID"
	ClusterID string `json:"clusterID"`

	// podCIDRs are the ranges of the member's pods. Addresses outside of podCIDRs and nodeCIDRs are refused.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	PodCIDRs []CIDR `json:"podCIDRs"`

	// nodeCIDRs are the ranges of the member's nodes. Pods in the host network have these addresses.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	NodeCIDRs []CIDR `json:"nodeCIDRs,omitempty"`

	// serviceCIDRs are the ranges of the member's Services. They define the IP families that it can import. Members may have the same
	// ranges.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	ServiceCIDRs []CIDR `json:"serviceCIDRs,omitempty"`

	// namespaces are the namespaces whose services the member may publish. If unset, these are all but reserved namespaces.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	Namespaces []NamespaceName `json:"namespaces,omitempty"`

	// claimedAges limits the ages that the member claims for its exports. Bounded: an export is at most 10 minutes older than its record
	// on the hub. Trusted: without limit, to adopt services that are older than the hub, or after the hub was rebuilt.
	// +kubebuilder:default=Bounded
	// +optional
	ClaimedAges ClaimedAges `json:"claimedAges,omitempty"`

	// network is the network of the member's pods. Pods of members of one network reach each other directly, pods of different networks
	// through gateways. If unset, it is "default".
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Network string `json:"network,omitempty"`

	// publish is what the member publishes of its endpoints. Addresses: their addresses, for members of the same network. Availability:
	// only how many endpoints of each port are available (none, one, or more), so that no pod address leaves the cluster; other
	// members then need its gateway. If unset, it is Addresses.
	// +optional
	Publish Publish `json:"publish,omitempty"`

	// gatewayCIDRs are the ranges of the addresses at which other members reach the gateways of this member. If unset, it may publish
	// no gateway with an IP address.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	GatewayCIDRs []CIDR `json:"gatewayCIDRs,omitempty"`

	// gatewayNames are the DNS names at which other members reach the gateways of this member.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	GatewayNames []DNSName `json:"gatewayNames,omitempty"`

	// properties describe the cluster, such as its region. Policies of all members refer to them, and the member shows them as
	// ClusterProperties. Keys are names of ClusterProperties (KEP-2149).
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +mapType=atomic
	Properties map[string]PropertyValue `json:"properties,omitempty"`

	// suspended ends all exports of the member at once, until it is false again. "kubectl clusterset leave" sets it before it deletes the Member.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
}

// PropertyValue is the value of a property of a cluster.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
type PropertyValue string

// CIDR is an IP range such as 10.0.0.0/16 or fd00::/48.
// +kubebuilder:validation:MaxLength=49
// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a CIDR such as 10.0.0.0/16 or fd00::/48"
type CIDR string

// NamespaceName is the name of a Kubernetes namespace.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type NamespaceName string

// ClaimedAges limits the ages that a member claims for its exports (spec R8).
// +kubebuilder:validation:Enum=Bounded;Trusted
type ClaimedAges string

// The limits of claimed ages.
const (
	ClaimedAgesBounded ClaimedAges = "Bounded"
	ClaimedAgesTrusted ClaimedAges = "Trusted"
)

// DefaultNetwork is the network of a Member that names none.
const DefaultNetwork = "default"

// Publish is what a member publishes of its endpoints.
// +kubebuilder:validation:Enum=Addresses;Availability
type Publish string

// What a member publishes of its endpoints.
const (
	PublishAddresses    Publish = "Addresses"
	PublishAvailability Publish = "Availability"
)

// DNSName is a name in the Domain Name System, in lower case.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
type DNSName string

// +kubebuilder:object:root=true

// MemberList is a list of Members.
type MemberList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Member `json:"items"`
}
