// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Bounds of a PublishedService. A publisher reports an export that exceeds them; an importer refuses it.
const (
	MaxServicePorts   = 100
	MaxMetadataKeys   = 64
	MaxMetadataLength = 4096
	MaxSettingLength  = 64
	MaxPortGroups     = 100
	MaxGrantedTo      = 256
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=publishedservices,shortName=pubsvc
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Families",type=string,JSONPath=`.spec.ipFamilies`
// +kubebuilder:printcolumn:name="Ports",type=string,JSONPath=`.spec.ports`,priority=1
// +kubebuilder:printcolumn:name="Exported",type=date,JSONPath=`.spec.exportedAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// PublishedService is one service that a member exports. Its name is `<namespace>.<service>`.
type PublishedService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PublishedServiceSpec `json:"spec"`
}

// PublishedServiceSpec is what the merge needs to know of an export.
// +kubebuilder:validation:XValidation:rule="self.type == 'Headless' || !has(self.headless)",message="only a headless service has hostnames"
// +kubebuilder:validation:XValidation:rule="!has(self.headless) || !has(self.headless.portGroups) || self.headless.portGroups.all(g, has(self.ports) && size(g.targetPorts) == size(self.ports))",message="a port group needs a target port for each port of the service"
// +kubebuilder:validation:XValidation:rule="!has(self.grantedTo) || has(self.inactive) && self.inactive",message="a record with grantedTo must be inactive: agents that do not know grants must not import it"
// +kubebuilder:validation:XValidation:rule="self.type == 'Headless' || (has(self.ports) && size(self.ports) > 0)",message="a ClusterSetIP service needs a port: only a headless one may have none"
type PublishedServiceSpec struct {
	// namespace is the service's namespace in every cluster.
	Namespace NamespaceName `json:"namespace"`

	// service is the service's name in every cluster.
	Service ServiceName `json:"service"`

	// exportedAt is the creationTimestamp of the ServiceExport, as the member claims it.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[0-9-]{10}T[0-9:]{8}Z$`
	ExportedAt metav1.Time `json:"exportedAt"`

	// inactive says that the ServiceExport exists but exports nothing, for example because its Service is missing. The record keeps the age
	// of the export. Importers use nothing of an inactive record without grantedTo.
	// +optional
	Inactive bool `json:"inactive,omitempty"`

	// grantedTo says that only some clusters import the service, as ServiceExportGrants of the member say. If it is set, inactive is too, so
	// that older agents import nothing.
	// +optional
	GrantedTo *GrantedTo `json:"grantedTo,omitempty"`

	// type is the type that importing clusters give the service.
	// +kubebuilder:validation:Enum=ClusterSetIP;Headless
	Type mcsv1beta1.ServiceImportType `json:"type"`

	// ports are the Service's ports. A headless service may have none.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="size(self) < 2 || self.all(p, has(p.name) && p.name != '' && self.exists_one(q, has(q.name) && q.name == p.name))",message="each port needs a name of its own: only a single port may go without"
	// +kubebuilder:validation:XValidation:rule="self.all(p, self.exists_one(q, q.protocol == p.protocol && q.port == p.port))",message="two ports have the same protocol and number: leave one out"
	// +kubebuilder:validation:XValidation:rule="self.all(p, has(p.available)) || self.all(p, !has(p.available))",message="some ports have no availability: give it for all ports or for none"
	// +listType=atomic
	Ports []PublishedPort `json:"ports,omitempty"`

	// ipFamilies are the Service's IP families, in its order.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="size(self) < 2 || self[0] != self[1]",message="an IP family is named twice: leave one out"
	// +listType=atomic
	IPFamilies []IPFamily `json:"ipFamilies"`

	// sessionAffinity is the Service's. Absent for headless services.
	// +kubebuilder:validation:Enum=ClientIP;None
	// +optional
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`

	// sessionAffinityTimeoutSeconds is the Service's sessionAffinityConfig.clientIP.timeoutSeconds.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	SessionAffinityTimeoutSeconds int32 `json:"sessionAffinityTimeoutSeconds,omitempty"`

	// internalTrafficPolicy is the Service's.
	// +optional
	InternalTrafficPolicy Setting `json:"internalTrafficPolicy,omitempty"`

	// trafficDistribution is the Service's.
	// +optional
	TrafficDistribution Setting `json:"trafficDistribution,omitempty"`

	// labels are the ServiceExport's exportedLabels.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +mapType=atomic
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// annotations are the ServiceExport's exportedAnnotations.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +mapType=atomic
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`

	// headless are the available endpoints of a headless service by hostname. Members of other networks need them. It is unset if the
	// service is not headless, or the member publishes no gateway.
	// +optional
	Headless *PublishedHeadless `json:"headless,omitempty"`

	// selection selects pods of an importing cluster that serve too, if both agents run with --derived-selector=oldest. It is not part
	// of the KEP.
	// +optional
	Selection *PublishedSelection `json:"selection,omitempty"`
}

// PublishedHeadless are the available endpoints of a headless service, without their addresses. An endpoint of a headless service is
// available if it is ready.
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="!has(self.hostnames) || self.hostnames.all(h, has(self.portGroups) && h.portGroup < size(self.portGroups))",message="a hostname refers to a port group that is not there"
type PublishedHeadless struct {
	// portGroups are the different sets of ports on which the endpoints listen.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	PortGroups []PublishedPortGroup `json:"portGroups,omitempty"`

	// hostnames are the hostnames of the endpoints.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=hostname
	Hostnames []PublishedHostname `json:"hostnames,omitempty"`

	// leftOut is the number of hostnames that are not published, because there are more than 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LeftOut int32 `json:"leftOut,omitempty"`
}

// PublishedPortGroup is a set of ports on which endpoints of a headless service listen.
type PublishedPortGroup struct {
	// targetPorts are the numbers of the ports on which the endpoints listen, one for each of the service's ports; 0 for a port on which
	// they do not listen, or whose protocol is not TCP.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=65535
	// +listType=atomic
	TargetPorts []int32 `json:"targetPorts"`
}

// PublishedHostname is a hostname of available endpoints.
type PublishedHostname struct {
	// hostname is empty for all endpoints without a hostname.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Hostname string `json:"hostname"`

	// portGroup is the index of their ports in portGroups.
	// +kubebuilder:validation:Minimum=0
	PortGroup int32 `json:"portGroup"`
}

// GrantedTo are the clusters that may import an export.
// +structType=atomic
type GrantedTo struct {
	// clusters are the IDs of the clusters, besides the member itself. It may be empty.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	Clusters []GrantedCluster `json:"clusters"`
}

// GrantedCluster is the ID of a cluster (KEP-2149).
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=56
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type GrantedCluster string

// PublishedSelection is how a Service finds its pods.
// +structType=atomic
type PublishedSelection struct {
	// labels are the Service's selector.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	// +mapType=atomic
	Labels map[string]LabelValue `json:"labels"`

	// targetPorts are where the pods listen, one for each of the service's ports.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	TargetPorts []TargetPort `json:"targetPorts,omitempty"`
}

// TargetPort is the number of a port, or the name that it has in a pod.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=15
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type TargetPort string

// ServiceName is the name of a Kubernetes Service. Since 1.36 it may begin with a digit.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type ServiceName string

// IPFamily is IPv4 or IPv6.
// +kubebuilder:validation:Enum=IPv4;IPv6
type IPFamily string

// Setting is a qualified name. An importer leaves out a value that its API server does not know.
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$`
type Setting string

// LabelValue is the value of an exported label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// AnnotationValue is the value of an exported annotation.
// +kubebuilder:validation:MaxLength=4096
type AnnotationValue string

// Protocol is a transport protocol.
// +kubebuilder:validation:Enum=TCP;UDP;SCTP
type Protocol string

// PublishedPort is a port of an exported Service.
type PublishedPort struct {
	// name may be empty where the Service has this one port only.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Name string `json:"name,omitempty"`

	// protocol is the port's transport protocol.
	Protocol Protocol `json:"protocol"`

	// port is the number that clients send to.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// appProtocol is the port's application protocol.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$`
	AppProtocol string `json:"appProtocol,omitempty"`

	// available is the number of available endpoints of the port: 0, 1, or 2 for two or more. An endpoint is available if it is ready.
	// If no endpoint of the port is ready, an endpoint is available if it serves while it terminates. Members of other networks need
	// this number. It is unset if the member publishes no gateway.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2
	Available *int32 `json:"available,omitempty"`

	// terminating is set if no endpoint of the port is ready, and its available endpoints serve while they terminate. Then importers use
	// the endpoints of other members, if the other members have ready endpoints.
	// +optional
	Terminating bool `json:"terminating,omitempty"`
}

// +kubebuilder:object:root=true

// PublishedServiceList is a list of PublishedServices.
type PublishedServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PublishedService `json:"items"`
}
