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

// Heartbeat shows that a member's agent runs, and the state of its publication. The member writes it.
type Heartbeat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec HeartbeatSpec `json:"spec"`
}

// HeartbeatSpec is the state of a member.
type HeartbeatSpec struct {
	// renewTime is when the member wrote the object, by its own clock. Whether a member is silent does not depend on it.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[0-9-]{10}T[0-9:]{8}[.][0-9]{6}Z$`
	RenewTime metav1.MicroTime `json:"renewTime"`

	// clusterUID is the UID of the member's kube-system namespace. It distinguishes two clusters with the same ID.
	// +kubebuilder:validation:MaxLength=64
	ClusterUID string `json:"clusterUID"`

	// nonce is a random number of the process that wrote the object. It distinguishes a cluster from a copy of it.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Nonce string `json:"nonce,omitempty"`

	// term is one more than the term of the object that this process replaced first. If a process with a lower term renews the object
	// afterwards, this process runs in a copy of the cluster, and stops.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Term int64 `json:"term,omitempty"`

	// contestedAt is when, by the member's clock, a copy of the member has last replaced the object, and the member has continued.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[0-9-]{10}T[0-9:]{8}[.][0-9]{6}Z$`
	// +optional
	ContestedAt *metav1.MicroTime `json:"contestedAt,omitempty"`

	// agentVersion is the version of the member's agent.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	AgentVersion string `json:"agentVersion,omitempty"`

	// intervalSeconds is the time between renewals. The member is silent after four intervals.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	// +optional
	IntervalSeconds int32 `json:"intervalSeconds,omitempty"`

	// services is the number of PublishedServices of the member.
	// +kubebuilder:validation:Minimum=0
	Services int32 `json:"services"`

	// publication is Complete if the hub stores all records of the member that can exist, otherwise Partial. While it is Partial, a missing record
	// does not count as deleted, unless a watch has reported the deletion.
	Publication Publication `json:"publication"`

	// servicesVersion is the highest resource version of the member's PublishedServices. A reader that has not read that version yet
	// does not have all records of the member.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ServicesVersion string `json:"servicesVersion,omitempty"`

	// endpointsVersion is the same for its PublishedEndpoints.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	EndpointsVersion string `json:"endpointsVersion,omitempty"`
}

// Publication is the state of the records of a member.
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
