// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/memberdns"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// StatusVersion and StatusKind identify a printed Status. Within a version, fields and reasons are added, but not removed, and
// their meaning does not change.
const (
	StatusVersion = "cli.tombolo-mcs.io/v1"
	StatusKind    = "ClustersetStatus"
)

// Status summarizes a clusterset.
type Status struct {
	metav1.TypeMeta `json:",inline"`
	// Time is the time of the snapshot, by the hub's clock.
	Time metav1.Time `json:"time"`
	// Hub is the URL of the hub's API server.
	Hub string `json:"hub"`
	// HubVersion is the version of the hub; absent if it is not known.
	HubVersion string `json:"hubVersion,omitempty"`
	// Problems are sorted: errors first, then by reason.
	Problems []Problem `json:"problems"`
	// Members are all members on the hub, sorted by ID.
	Members []MemberStatus `json:"members"`
	// Services are all services with records on the hub, sorted by namespace and name.
	Services []ServiceStatus `json:"services"`
	// Unreached are the contexts of the kubeconfig that are left out, with the reason.
	Unreached []UnreachedStatus `json:"unreached,omitempty"`
}

// Severity is the severity of a problem.
type Severity string

// Values of Severity.
const (
	// SeverityError means that something does not work.
	SeverityError Severity = "error"
	// SeverityWarning means that something works in an unexpected manner, or may soon not work.
	SeverityWarning Severity = "warning"
)

// Reason is the reason of a problem.
type Reason string

// The reasons, in the order in which they are listed.
const (
	ReasonHubUnreadable        Reason = "HubUnreadable"        // the hub could not be read
	ReasonContextUnreadable    Reason = "ContextUnreadable"    // the API server of a context could not be read
	ReasonMemberSilent         Reason = "MemberSilent"         // the hub has received no heartbeat for the grace period
	ReasonMemberNeverConnected Reason = "MemberNeverConnected" // it is on the hub, but has never sent a heartbeat
	ReasonRecordRefused        Reason = "RecordRefused"        // members refuse a record
	ReasonExportInvalid        Reason = "ExportInvalid"        // a ServiceExport cannot be exported
	ReasonExportFailed         Reason = "ExportFailed"         // the hub refuses an export
	ReasonImportNotReady       Reason = "ImportNotReady"       // a ServiceImport cannot be used
	ReasonNoSource             Reason = "NoSource"             // no source of an import's ServiceImportRoutingPolicy has an available endpoint
	ReasonImportObstructed     Reason = "ImportObstructed"     // an unmanaged ServiceImport has the name of an import
	ReasonAliasNotReady        Reason = "AliasNotReady"        // traffic to an alias reaches no endpoints of its import
	ReasonGatewayUnreachable   Reason = "GatewayUnreachable"   // no gateway of a member reaches those of another
	ReasonDNSStale             Reason = "DNSStale"             // the cluster's DNS forwards the names to an address that Tombolo's DNS does not have
	ReasonRulesMissing         Reason = "RulesMissing"         // a cluster does not serve a kind of rules
	ReasonRuleNotAccepted      Reason = "RuleNotAccepted"      // a rule about access is not valid
	ReasonMemberUnreadable     Reason = "MemberUnreadable"     // it answers, but some of its objects cannot be read
	ReasonNotKnown             Reason = "NotKnown"             // something was seen, and this program does not know whether it is a fault
	ReasonAgentNotReady        Reason = "AgentNotReady"        // no pod of a member's agent is ready
	ReasonMemberCopied         Reason = "MemberCopied"         // another cluster has the identity of a member
	ReasonDeletionPending      Reason = "DeletionPending"      // a cluster keeps imports until a member confirms their deletion
	ReasonConflict             Reason = "Conflict"             // the exports of a service differ
	ReasonNoReadyEndpoints     Reason = "NoReadyEndpoints"     // an exported service without ready endpoints
	ReasonEndpointsLeftOut     Reason = "EndpointsLeftOut"     // an export without some of its endpoints
	ReasonProxyProtocol        Reason = "ProxyProtocol"        // some clients of an export's ports send no PROXY protocol header
	ReasonNotExportedByLabel   Reason = "NotExportedByLabel"   // a label asks for an export that does not exist
	ReasonFallback             Reason = "Fallback"             // a later source of the policy serves an import
	ReasonSourceUnusable       Reason = "SourceUnusable"       // an import cannot use an exporter, or some of its ports
	ReasonSettingsLeftOut      Reason = "SettingsLeftOut"      // an import without some of the service's settings
	ReasonAliasIncomplete      Reason = "AliasIncomplete"      // an alias without some of its ports, endpoints or traffic
	ReasonRuleNamesNotFound    Reason = "RuleNamesNotFound"    // a rule about access names something that does not exist
	ReasonRuleNotEnforced      Reason = "RuleNotEnforced"      // a rule about access does not restrict all connections that it is about
	ReasonDNSNotSet            Reason = "DNSNotSet"            // the cluster's DNS does nothing with the names, and the member has imports
	ReasonPublicationPartial   Reason = "PublicationPartial"   // not all of its exports are on the hub
	ReasonVersionSkew          Reason = "VersionSkew"          // agents of several versions
	ReasonMemberNewer          Reason = "MemberNewer"          // an agent of a later version than the hub
)

// Problem is a problem of the clusterset, a member or a service.
type Problem struct {
	Severity Severity `json:"severity"`
	Reason   Reason   `json:"reason"`
	// Member is the member that has the problem; empty if it is not one member's.
	Member clusterset.ClusterID `json:"member,omitempty"`
	// Service is "namespace/name"; empty if the problem is not about a service.
	Service string `json:"service,omitempty"`
	// Message states what is wrong, Next what to do about it.
	Message string `json:"message"`
	Next    string `json:"next"`
}

// MemberStatus summarizes a member.
type MemberStatus struct {
	ID clusterset.ClusterID `json:"id"`
	// Network is its network: members of one network reach each other's endpoints directly, others through gateways.
	Network string       `json:"network"`
	State   survey.State `json:"state"`
	// SilentSeconds is the age of its last heartbeat; absent if the hub has received none.
	SilentSeconds *int64 `json:"silentSeconds,omitempty"`
	// Version is the version of its agent.
	Version string `json:"version,omitempty"`
	// Publication is Complete if the hub stores all of its exports, otherwise Partial.
	Publication string `json:"publication"`
	// Exports counts the services, Endpoints and ReadyEndpoints the endpoints on the hub that other members accept. AtLeast is true if there
	// may be more endpoints than that.
	Exports        int  `json:"exports"`
	Endpoints      int  `json:"endpoints"`
	ReadyEndpoints int  `json:"readyEndpoints"`
	AtLeast        bool `json:"atLeast,omitempty"`
	// Context is the context of the kubeconfig that reaches it. If there is none, Context, Imports and PendingDeletions are
	// absent.
	Context string `json:"context,omitempty"`
	// Imports counts the services that it imports, and PendingDeletions those of them that it keeps until an exporter confirms
	// their deletion.
	Imports          *int `json:"imports,omitempty"`
	PendingDeletions *int `json:"pendingDeletions,omitempty"`
	// DNS is what its DNS does with the names of the clusterset, by its configuration, and DNSMessage what is configured. They are absent if
	// there is no Context.
	DNS        memberdns.State `json:"dns,omitempty"`
	DNSMessage string          `json:"dnsMessage,omitempty"`
}

// ServiceStatus summarizes a service of the clusterset.
type ServiceStatus struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Type, Ports and IPFamilies are those of the merged service; empty if no export is accepted.
	Type       mcsv1beta1.ServiceImportType `json:"type,omitempty"`
	Ports      []string                     `json:"ports,omitempty"`
	IPFamilies []corev1.IPFamily            `json:"ipFamilies,omitempty"`
	// Exporters are the clusters whose exports are accepted, by ID; Oldest is the one that wins conflicts.
	Exporters []ExporterStatus     `json:"exporters"`
	Oldest    clusterset.ClusterID `json:"oldest,omitempty"`
	// Importers are the reachable members that import it.
	Importers []clusterset.ClusterID `json:"importers,omitempty"`
	// Fallback are the Importers in which the first source of a ServiceImportRoutingPolicy does not serve all ports.
	Fallback []clusterset.ClusterID `json:"fallback,omitempty"`
	// Paths are from Importers to Exporters whose endpoints they do not reach directly, by their addresses.
	Paths []PathStatus `json:"paths,omitempty"`
	// Conflicts are the fields in which the exports differ.
	Conflicts []ConflictStatus `json:"conflicts,omitempty"`
	// Refused counts its records and endpoints that are not accepted.
	Refused int `json:"refused,omitempty"`
}

// Key returns "namespace/name".
func (s ServiceStatus) Key() string { return s.Namespace + "/" + s.Name }

// ExporterStatus is a cluster that exports a service.
type ExporterStatus struct {
	Cluster        clusterset.ClusterID `json:"cluster"`
	Endpoints      int                  `json:"endpoints"`
	ReadyEndpoints int                  `json:"readyEndpoints"`
	// AtLeast is true if there may be more endpoints: a cluster that publishes no addresses reports two for two or more, and if the hub could
	// not be read, nothing is known of them.
	AtLeast bool `json:"atLeast,omitempty"`
}

// ConflictStatus is a field in which exports differ.
type ConflictStatus struct {
	Reason mcsv1beta1.ServiceExportConditionReason `json:"reason"`
	Field  string                                  `json:"field"`
	// Using is the value of the merged service, Disagree are the clusters whose exports have another.
	Using    string                 `json:"using"`
	Disagree []clusterset.ClusterID `json:"disagree"`
}

// UnreachedStatus is a context that is left out, with the reason.
type UnreachedStatus struct {
	Context string `json:"context"`
	Error   string `json:"error"`
}

// InNamespace returns the status with the services of a namespace only, or all if it is empty. Problems that are not about a
// service are kept.
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

// Silence returns the age of the member's last heartbeat; 0 if there is none.
func (m MemberStatus) Silence() time.Duration {
	if m.SilentSeconds == nil {
		return 0
	}
	return time.Duration(*m.SilentSeconds) * time.Second
}

// Networks returns the networks of members, sorted.
func Networks(members []MemberStatus) []string {
	var result []string
	for _, m := range members {
		result = append(result, m.Network)
	}
	slices.Sort(result)
	return slices.Compact(result)
}
