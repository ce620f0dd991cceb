// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package assess judges a clusterset: from the observations of package survey, it computes a Status with the problems, and the changes between
// two of them. It has no client and no clock: the same observations give the same Status.
package assess

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Assess computes the status of the clusterset from the hub and the objects of the reachable members. unread are the API servers that
// could not be read. It is pure.
func Assess(h *survey.Hub, members []survey.MemberObjects, unreached []survey.Unreached, unread ...survey.Unread) Status {
	a := assessment{
		hub: h, objects: map[clusterset.ClusterID]survey.MemberObjects{}, members: map[clusterset.ClusterID]*MemberStatus{},
		unreached: map[clusterset.ClusterID]map[clusterset.ClusterID]PathStatus{},
	}
	for _, s := range members {
		a.objects[s.ID] = s
	}
	status := Status{
		TypeMeta: metav1.TypeMeta{APIVersion: StatusVersion, Kind: StatusKind},
		Time:     metav1.NewTime(h.Now.UTC()), Hub: h.KubeContext.Config.Host, HubVersion: h.Version,
		Problems: []Problem{}, Members: []MemberStatus{}, Services: []ServiceStatus{},
	}
	for _, u := range unreached {
		status.Unreached = append(status.Unreached, UnreachedStatus{u.Context, u.Err.Error()})
	}
	for _, u := range unread {
		a.problemOfUnread(u)
	}
	ids := a.memberIDs(members)
	for _, id := range ids {
		m := a.memberStatus(id)
		a.members[id] = &m
	}
	importers := a.importers(isAny)
	fallbacks := a.importers(isFallback)
	for _, key := range a.keys(members) {
		known := h.Records.Service(key)
		status.Services = append(status.Services, a.serviceStatus(key, known, importers[key]))
		status.Services[len(status.Services)-1].Fallback = fallbacks[key]
		a.problemsOfService(key, known, status.Services[len(status.Services)-1])
	}
	for _, id := range ids {
		status.Members = append(status.Members, *a.members[id])
		a.problemsOfMember(*a.members[id])
		if s, ok := a.objects[id]; ok {
			a.problemsOfObjects(s)
		}
	}
	a.problemOfSkew(status.Members)
	a.problemsOfVersions(h.Version, status.Members)
	status.Problems = append(status.Problems, a.problems...)
	slices.SortStableFunc(status.Problems, bySeverity)
	return status
}

// assessment collects the parts of a Status.
type assessment struct {
	hub      *survey.Hub
	objects  map[clusterset.ClusterID]survey.MemberObjects
	members  map[clusterset.ClusterID]*MemberStatus
	problems []Problem
	// unreached are the paths through gateways that do not work or are not known to work, by importer and exporter.
	unreached map[clusterset.ClusterID]map[clusterset.ClusterID]PathStatus
}

func (a *assessment) add(p Problem) { a.problems = append(a.problems, p) }

// SortedKeys returns keys sorted by namespace and name.
func SortedKeys(keys []clusterset.ServiceKey) []clusterset.ServiceKey {
	return slices.SortedFunc(slices.Values(keys), func(x, y clusterset.ServiceKey) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
}

// memberStatus returns the status of a member without the totals of its services.
func (a *assessment) memberStatus(id clusterset.ClusterID) MemberStatus {
	m := MemberStatus{
		ID: id, Network: cmp.Or(a.hub.Records.Cluster(id).Network, hubv1alpha1.DefaultNetwork), State: a.hub.LastHeartbeat(id).State(), Publication: string(a.hub.Publication(id)),
	}
	if beat := a.hub.Records.Heartbeat(id); beat != nil {
		m.Version = beat.Spec.AgentVersion
	}
	if age, received := a.hub.Silence(id); received {
		m.SilentSeconds = new(int64(age / time.Second))
	}
	if !a.hub.IsRead() {
		m.Network, m.Publication = "", ""
	}
	objects, reached := a.objects[id]
	if !reached {
		return m
	}
	m.Context, m.DNS, m.DNSMessage = objects.Context, objects.DNS.State, objects.DNS.Message
	if len(objects.Errs) > 0 && len(objects.Imports) == 0 {
		return m // the imports may be what could not be read
	}
	imports, pending := 0, 0
	for i := range objects.Imports {
		if !clusterset.IsManaged(objects.Imports[i].Labels) {
			continue
		}
		imports++
		if isPending(&objects.Imports[i]) {
			pending++
		}
	}
	m.Imports, m.PendingDeletions = &imports, &pending
	return m
}

func isPending(serviceImport *mcsv1beta1.ServiceImport) bool {
	return meta.IsStatusConditionTrue(serviceImport.Status.Conditions, conditions.TypeDeletionPending)
}

func isAny(*mcsv1beta1.ServiceImport) bool { return true }

// isFallback reports whether the first source of the import's ServiceImportRoutingPolicy does not serve all ports.
func isFallback(serviceImport *mcsv1beta1.ServiceImport) bool {
	return meta.IsStatusConditionFalse(serviceImport.Status.Conditions, conditions.TypePreferred)
}

// importers returns the reachable members that import each service, sorted: those whose import is one that matches.
func (a *assessment) importers(matches func(*mcsv1beta1.ServiceImport) bool) map[clusterset.ServiceKey][]clusterset.ClusterID {
	result := map[clusterset.ServiceKey][]clusterset.ClusterID{}
	for id, s := range a.objects {
		for i := range s.Imports {
			if object := &s.Imports[i]; clusterset.IsManaged(object.Labels) && matches(object) {
				key := clusterset.ServiceKey{Namespace: object.Namespace, Name: object.Name}
				result[key] = append(result[key], id)
			}
		}
	}
	for _, ids := range result {
		slices.Sort(ids)
	}
	return result
}

// serviceStatus returns the status of a service, and adds its endpoints to the totals of its exporters.
func (a *assessment) serviceStatus(key clusterset.ServiceKey, known sources.Hub, importers []clusterset.ClusterID) ServiceStatus {
	s := ServiceStatus{
		Namespace: key.Namespace, Name: key.Name, Exporters: []ExporterStatus{}, Importers: importers, Refused: known.RefusedTotal,
		Paths: a.paths(known, importers),
	}
	s.Exporters = append(s.Exporters, Exporters(known)...)
	if !a.hub.IsRead() {
		a.addSeen(key, &s)
	}
	for _, e := range s.Exporters {
		if m := a.members[e.Cluster]; m != nil {
			m.Exports++
			m.Endpoints += e.Endpoints
			m.ReadyEndpoints += e.ReadyEndpoints
			m.AtLeast = m.AtLeast || e.AtLeast
		}
	}
	merged, ok := merge.Merge(known.Exports)
	if !ok {
		return s
	}
	s.Type, s.Oldest, s.IPFamilies = merged.Type, merged.Oldest, merged.IPFamilies
	for _, port := range merged.Ports {
		s.Ports = append(s.Ports, port.String())
	}
	for _, c := range merged.Conflicts {
		s.Conflicts = append(s.Conflicts, ConflictStatus{c.Reason, c.Field, c.Using, c.Disagree})
	}
	return s
}

// Exporters returns the counts of the endpoints of all exporters.
func Exporters(known sources.Hub) []ExporterStatus {
	counts := endpointCounts(known.Slices)
	var result []ExporterStatus
	for _, export := range known.Exports {
		result = append(result, exporterStatus(export, counts))
	}
	return result
}

// exporterStatus returns the counts of an exporter's endpoints. One that publishes no addresses says how many endpoints of a port are
// available, up to a limit (W2).
func exporterStatus(export clusterset.Export, counts map[clusterset.ClusterID]ExporterStatus) ExporterStatus {
	result := counts[export.Cluster]
	result.Cluster = export.Cluster
	if result.Endpoints == 0 {
		for _, available := range export.Available {
			result.Endpoints = max(result.Endpoints, int(available))
		}
		result.ReadyEndpoints = result.Endpoints
		result.AtLeast = result.Endpoints >= clusterset.MaxAvailable
	}
	return result
}

// endpointCounts counts the endpoints of each cluster. A dual-stack endpoint is in one slice per family, so the count of the
// larger family is used.
func endpointCounts(list []clusterset.Slice) map[clusterset.ClusterID]ExporterStatus {
	type family struct {
		cluster clusterset.ClusterID
		of      string
	}
	counts := map[family]ExporterStatus{}
	for _, slice := range list {
		f := family{slice.Cluster, string(slice.AddressType)}
		c := counts[f]
		c.Endpoints += len(slice.Endpoints)
		for _, e := range slice.Endpoints {
			if e.IsReady() {
				c.ReadyEndpoints++
			}
		}
		counts[f] = c
	}
	result := map[clusterset.ClusterID]ExporterStatus{}
	for f, c := range counts {
		most := result[f.cluster]
		most.Endpoints, most.ReadyEndpoints = max(most.Endpoints, c.Endpoints), max(most.ReadyEndpoints, c.ReadyEndpoints)
		result[f.cluster] = most
	}
	return result
}

// reasons are the reasons of problems in the order in which they are listed.
var reasons = []Reason{
	ReasonHubUnreadable, ReasonContextUnreadable, ReasonMemberSilent, ReasonMemberNeverConnected, ReasonRecordRefused, ReasonExportInvalid, ReasonExportFailed,
	ReasonImportNotReady, ReasonNoSource, ReasonImportObstructed, ReasonAliasNotReady, ReasonGatewayUnreachable, ReasonDNSStale,
	ReasonRulesMissing, ReasonRuleNotAccepted, ReasonMemberUnreadable,
	ReasonNotKnown, ReasonAgentNotReady, ReasonMemberCopied, ReasonDeletionPending, ReasonConflict, ReasonNoReadyEndpoints, ReasonEndpointsLeftOut, ReasonProxyProtocol,
	ReasonNotExportedByLabel, ReasonFallback, ReasonSourceUnusable, ReasonSettingsLeftOut, ReasonAliasIncomplete, ReasonRuleNamesNotFound, ReasonRuleNotEnforced, ReasonDNSNotSet, ReasonPublicationPartial,
	ReasonVersionSkew, ReasonMemberNewer,
}

func bySeverity(a, b Problem) int {
	return cmp.Or(
		strings.Compare(string(a.Severity), string(b.Severity)), // "error" is before "warning"
		cmp.Compare(slices.Index(reasons, a.Reason), slices.Index(reasons, b.Reason)),
		cmp.Compare(a.Service, b.Service), cmp.Compare(a.Member, b.Member),
	)
}
