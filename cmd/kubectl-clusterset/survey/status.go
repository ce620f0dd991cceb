// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// StatusVersion and StatusKind say what a printed Status is. Within a version, fields and reasons are added, but neither
// taken away nor given another meaning.
const (
	StatusVersion = "cli.tombolo-mcs.io/v1"
	StatusKind    = "ClustersetStatus"
)

// Status is a clusterset at a glance.
type Status struct {
	metav1.TypeMeta `json:",inline"`
	// Time is that of the hub, by its clock.
	Time metav1.Time `json:"time"`
	// Hub is the URL of its API server.
	Hub string `json:"hub"`
	// Problems are what somebody should look into: errors first, each kind together.
	Problems []Problem `json:"problems"`
	// Members are all that the hub admits, by ID.
	Members []MemberStatus `json:"members"`
	// Services are all that the hub has records of, by namespace and name.
	Services []ServiceStatus `json:"services"`
	// Unreached are the contexts of the kubeconfig of which nothing is told here, and why.
	Unreached []UnreachedStatus `json:"unreached,omitempty"`
}

// Severity says how bad a problem is.
type Severity string

// How bad a problem is.
const (
	// SeverityError: something does not work.
	SeverityError Severity = "error"
	// SeverityWarning: something works otherwise than somebody may think, or soon may not work.
	SeverityWarning Severity = "warning"
)

// Reason is the kind of a problem.
type Reason string

// The kinds of problems, in the order in which they are told.
const (
	ReasonMemberSilent       Reason = "MemberSilent"       // the hub has not heard from it for its grace period
	ReasonMemberNeverHeard   Reason = "MemberNeverHeard"   // admitted, but it has never sent a heartbeat
	ReasonRecordRefused      Reason = "RecordRefused"      // members do not take over what the hub holds
	ReasonExportInvalid      Reason = "ExportInvalid"      // a ServiceExport cannot be exported
	ReasonExportFailed       Reason = "ExportFailed"       // the hub refuses an export
	ReasonImportNotReady     Reason = "ImportNotReady"     // a ServiceImport cannot be used
	ReasonImportObstructed   Reason = "ImportObstructed"   // somebody else's ServiceImport is in the place of one
	ReasonMemberUnreadable   Reason = "MemberUnreadable"   // it answers, but what it holds may not be read
	ReasonDeletionPending    Reason = "DeletionPending"    // a cluster keeps imports until a member confirms their deletion
	ReasonConflict           Reason = "Conflict"           // exporters of one service disagree
	ReasonNoReadyEndpoints   Reason = "NoReadyEndpoints"   // an exported service that nobody answers
	ReasonEndpointsLeftOut   Reason = "EndpointsLeftOut"   // an export without some of its endpoints
	ReasonSettingsLeftOut    Reason = "SettingsLeftOut"    // an import without some of the service's settings
	ReasonPublicationPartial Reason = "PublicationPartial" // not everything that it exports is on the hub
	ReasonVersionSkew        Reason = "VersionSkew"        // agents of several versions
)

// Problem is something that somebody should look into.
type Problem struct {
	Severity Severity `json:"severity"`
	Reason   Reason   `json:"reason"`
	// Member is whose problem it is; empty where it is everybody's.
	Member clusterset.ClusterID `json:"member,omitempty"`
	// Service is "namespace/name"; empty where it is not about one.
	Service string `json:"service,omitempty"`
	// Message says what is wrong, Next what to do about it.
	Message string `json:"message"`
	Next    string `json:"next"`
}

// State says whether the hub hears of a member.
type State string

// Whether the hub hears of a member.
const (
	StateConnected  State = "Connected"
	StateSilent     State = "Silent"
	StateNeverHeard State = "NeverHeard"
)

// MemberStatus is a member at a glance.
type MemberStatus struct {
	ID    clusterset.ClusterID `json:"id"`
	State State                `json:"state"`
	// SilentSeconds is how long ago the hub received its last heartbeat; absent where it never has.
	SilentSeconds *int64 `json:"silentSeconds,omitempty"`
	// Version is its agent's.
	Version string `json:"version,omitempty"`
	// Publication is Complete where all that it exports is on the hub, else Partial.
	Publication string `json:"publication"`
	// Exports are the services, Endpoints and ReadyEndpoints the backends that it has on the hub and that others accept.
	Exports        int `json:"exports"`
	Endpoints      int `json:"endpoints"`
	ReadyEndpoints int `json:"readyEndpoints"`
	// Context is by which it was reached; absent where it was not, and then so are Imports and PendingDeletions.
	Context string `json:"context,omitempty"`
	// Imports is how many services it imports, and PendingDeletions how many of them it keeps until an exporter confirms
	// their deletion.
	Imports          *int `json:"imports,omitempty"`
	PendingDeletions *int `json:"pendingDeletions,omitempty"`
}

// ServiceStatus is a service of the clusterset at a glance.
type ServiceStatus struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Type, Ports and IPFamilies are what the exports are merged to; empty where none of them is accepted.
	Type       mcsv1beta1.ServiceImportType `json:"type,omitempty"`
	Ports      []string                     `json:"ports,omitempty"`
	IPFamilies []corev1.IPFamily            `json:"ipFamilies,omitempty"`
	// Exporters are the clusters whose exports are accepted, by ID; Oldest is the one whose word counts.
	Exporters []ExporterStatus     `json:"exporters"`
	Oldest    clusterset.ClusterID `json:"oldest,omitempty"`
	// Importers are the members that import it, among those that were reached.
	Importers []clusterset.ClusterID `json:"importers,omitempty"`
	// Conflicts are where the exporters disagree.
	Conflicts []ConflictStatus `json:"conflicts,omitempty"`
	// Refused is how many of its records, or of their endpoints, are not accepted.
	Refused int `json:"refused,omitempty"`
}

// Key returns "namespace/name".
func (s ServiceStatus) Key() string { return s.Namespace + "/" + s.Name }

// ExporterStatus is a cluster that exports a service.
type ExporterStatus struct {
	Cluster        clusterset.ClusterID `json:"cluster"`
	Endpoints      int                  `json:"endpoints"`
	ReadyEndpoints int                  `json:"readyEndpoints"`
}

// ConflictStatus is a field in which exporters disagree.
type ConflictStatus struct {
	Reason mcsv1beta1.ServiceExportConditionReason `json:"reason"`
	Field  string                                  `json:"field"`
	// Using is the value that counts, Disagree whose export has another.
	Using    string                 `json:"using"`
	Disagree []clusterset.ClusterID `json:"disagree"`
}

// UnreachedStatus is a context of which nothing is told.
type UnreachedStatus struct {
	Context string `json:"context"`
	Error   string `json:"error"`
}

// InNamespace returns the status of the services of a namespace, or of all where it is empty. Problems that are about no service
// stay.
func (s Status) InNamespace(namespace string) Status {
	if namespace == "" {
		return s
	}
	s.Services = slices.DeleteFunc(slices.Clone(s.Services), func(service ServiceStatus) bool { return service.Namespace != namespace })
	s.Problems = slices.DeleteFunc(slices.Clone(s.Problems), func(p Problem) bool {
		return p.Service != "" && !strings.HasPrefix(p.Service, namespace+"/")
	})
	return s
}

// Silence returns how long the hub has not heard of a member; 0 where it never has.
func (m MemberStatus) Silence() time.Duration {
	if m.SilentSeconds == nil {
		return 0
	}
	return time.Duration(*m.SilentSeconds) * time.Second
}
