// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxEndpoints bounds the endpoints of one PublishedEndpoints, as discovery.k8s.io bounds those of an EndpointSlice, and
// their addresses, all groups together: endpoints with more than one are rare.
const MaxEndpoints = 1000

// MaxGroups bounds the groups of one PublishedEndpoints, as a group takes an agent more memory than an endpoint. The slices of
// Kubernetes' own controller, of 100 endpoints, cannot need more. It gives them no more than four combinations of conditions, so even
// one of 1,000 endpoints needs more only where they are of more than 25 zones.
const MaxGroups = 100

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=publishedendpoints,shortName=pubeps
// +kubebuilder:printcolumn:name="Family",type=string,JSONPath=`.spec.addressType`
// +kubebuilder:printcolumn:name="First Address",type=string,JSONPath=`.spec.groups[0].addresses[0]`
// +kubebuilder:printcolumn:name="Changed",type=date,JSONPath=`.spec.triggerTime`
// +kubebuilder:printcolumn:name="Ports",type=string,JSONPath=`.spec.ports`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// PublishedEndpoints is one EndpointSlice of an exported service. Its name is `<namespace>.<service>.<slice>`, so that
// a change of one slice is one small write. The slice is an ID of 10 hexadecimal digits.
type PublishedEndpoints struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PublishedEndpointsSpec `json:"spec"`
}

// PublishedEndpointsSpec is an EndpointSlice, less what means nothing elsewhere.
// +kubebuilder:validation:XValidation:rule="!has(self.inNetwork) || !has(self.groups)",message="endpoints are in groups or in inNetwork: leave one of them out"
type PublishedEndpointsSpec struct {
	// namespace is the service's namespace in every cluster.
	Namespace NamespaceName `json:"namespace"`

	// service is the service's name in every cluster.
	Service ServiceName `json:"service"`

	// addressType is the family of all addresses here.
	AddressType IPFamily `json:"addressType"`

	// ports are the ports that the endpoints listen on.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(p, self.exists_one(q, (has(q.name) ? q.name : '') == (has(p.name) ? p.name : '')))",message="two ports have the same name: leave one out"
	// +listType=atomic
	Ports []PublishedEndpointPort `json:"ports,omitempty"`

	// groups are the endpoints. Endpoints with the same zone and conditions are in one group, which keeps records small. They have at most
	// 1000 addresses.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.map(g, size(g.addresses)).sum() <= 1000",message="the groups have more than 1000 addresses in all: spread the endpoints over several records"
	// +listType=atomic
	Groups []EndpointGroup `json:"groups,omitempty"`

	// inNetwork are the endpoints of a member of a network other than "default", instead of groups: older agents must not use them.
	// +optional
	// +structType=atomic
	InNetwork *NetworkEndpoints `json:"inNetwork,omitempty"`

	// triggerTime is when the change that this record reflects happened, by the clock of its cluster, for measuring only.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[0-9-]{10}T[0-9:]{8}[.][0-9]{6}Z$`
	TriggerTime *metav1.MicroTime `json:"triggerTime,omitempty"`
}

// NetworkEndpoints are endpoints whose addresses exist in one network only.
type NetworkEndpoints struct {
	// network is the network of the Member.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self != 'default'",message="endpoints of network default are in groups"
	Network string `json:"network"`

	// groups are as in the spec.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.map(g, size(g.addresses)).sum() <= 1000",message="the groups have more than 1000 addresses in all: spread the endpoints over several records"
	// +listType=atomic
	Groups []EndpointGroup `json:"groups,omitempty"`
}

// PublishedEndpointPort is a port that endpoints listen on.
type PublishedEndpointPort struct {
	// name is the name of the Service port.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Name string `json:"name,omitempty"`

	// protocol is the port's transport protocol.
	Protocol Protocol `json:"protocol"`

	// port is the number that the endpoints listen on. It is absent if the source EndpointSlice has no number.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// appProtocol is the port's application protocol.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$`
	AppProtocol string `json:"appProtocol,omitempty"`
}

// EndpointGroup is a set of endpoints that share zone and conditions.
// +kubebuilder:validation:XValidation:rule="size(self.addresses) % (has(self.addressesPerEndpoint) ? self.addressesPerEndpoint : 1) == 0",message="the addresses are no multiple of addressesPerEndpoint: each endpoint needs that many"
// +kubebuilder:validation:XValidation:rule="!has(self.hostnames) || size(self.hostnames) * (has(self.addressesPerEndpoint) ? self.addressesPerEndpoint : 1) == size(self.addresses)",message="hostnames must have one entry for each endpoint, or be absent"
type EndpointGroup struct {
	// zone is the zone of all endpoints of this group.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	Zone string `json:"zone,omitempty"`

	// ready is the condition ready of the endpoints. It is absent if the source EndpointSlice does not have it.
	// +optional
	Ready *bool `json:"ready,omitempty"`

	// serving is the condition serving of the endpoints. It is absent if the source EndpointSlice does not have it.
	// +optional
	Serving *bool `json:"serving,omitempty"`

	// terminating is the condition terminating of the endpoints. It is absent if the source EndpointSlice does not have it.
	// +optional
	Terminating *bool `json:"terminating,omitempty"`

	// addressesPerEndpoint is how many addresses each endpoint has: 1 unless a custom controller gives it more.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	AddressesPerEndpoint int32 `json:"addressesPerEndpoint,omitempty"`

	// addresses are the addresses of the endpoints, in the order of the endpoints.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	Addresses []IPAddress `json:"addresses"`

	// hostnames are the hostnames of the endpoints, in the order of the endpoints. They are absent if no endpoint has a hostname.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	Hostnames []Hostname `json:"hostnames,omitempty"`
}

// IPAddress is an IPv4 or IPv6 address in canonical form.
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=39
type IPAddress string

// Hostname is a DNS label, or empty.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
type Hostname string

// +kubebuilder:object:root=true

// PublishedEndpointsList is a list of PublishedEndpoints.
type PublishedEndpointsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PublishedEndpoints `json:"items"`
}
