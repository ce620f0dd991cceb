// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HeartbeatName is the name of the one Heartbeat in a member's namespace.
const HeartbeatName = "heartbeat"

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=heartbeats
// +kubebuilder:printcolumn:name="Renewed",type=date,JSONPath=`.spec.renewTime`
// +kubebuilder:printcolumn:name="Publication",type=string,JSONPath=`.spec.publication`
// +kubebuilder:printcolumn:name="Services",type=integer,JSONPath=`.spec.services`
// +kubebuilder:printcolumn:name="Agent",type=string,JSONPath=`.spec.agentVersion`
// +kubebuilder:printcolumn:name="Cluster UID",type=string,JSONPath=`.spec.clusterUID`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'heartbeat'",message="a member's namespace has one Heartbeat, named heartbeat"

// Heartbeat says that a member's agent is alive and how far its publication has come. The member writes it.
type Heartbeat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec HeartbeatSpec `json:"spec"`
}

// HeartbeatSpec is what a member says of itself.
type HeartbeatSpec struct {
	// renewTime is when the member wrote this, by its own clock. It is for people to read: liveness is judged by whether
	// renewals arrive, never by comparing clocks.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[0-9-]{10}T[0-9:]{8}[.][0-9]{6}Z$`
	RenewTime metav1.MicroTime `json:"renewTime"`

	// clusterUID is the UID of the member's kube-system namespace. It tells two clusters apart that bear one ID.
	// +kubebuilder:validation:MaxLength=64
	ClusterUID string `json:"clusterUID"`

	// agentVersion is the version of the member's agent.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	AgentVersion string `json:"agentVersion,omitempty"`

	// intervalSeconds is the time between renewals. Others wait for several of it, or of their own where that is longer, before they
	// take the member for silent.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	// +optional
	IntervalSeconds int32 `json:"intervalSeconds,omitempty"`

	// services is how many services the member has published.
	// +kubebuilder:validation:Minimum=0
	Services int32 `json:"services"`

	// publication says whether everything the member exports is on the hub. Until it is Complete, the absence of a record
	// means nothing, and nobody deletes anything because of it, unless it was seen to be deleted.
	Publication Publication `json:"publication"`

	// servicesVersion is the highest resource version of the member's PublishedServices when its publication became Complete.
	// Who has not seen as much of that kind yet does not know all that the member exports.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ServicesVersion string `json:"servicesVersion,omitempty"`

	// endpointsVersion is the same of its PublishedEndpoints.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	EndpointsVersion string `json:"endpointsVersion,omitempty"`
}

// Publication says how far a member has published its exports.
// +kubebuilder:validation:Enum=Partial;Complete
type Publication string

// How far a member has published its exports.
const (
	PublicationPartial  Publication = "Partial"
	PublicationComplete Publication = "Complete"
)

// +kubebuilder:object:root=true

// HeartbeatList is a list of Heartbeats.
type HeartbeatList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Heartbeat `json:"items"`
}
