// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
	"github.com/tombolo-mcs/tombolo/pkg/merge"
)

// Assess returns the clusterset at a glance, from what the hub holds and what the members say that could be reached. It
// asks nobody.
func Assess(h *Hub, sights []Sight, unreached []Unreached) Status {
	a := assessment{hub: h, sights: map[clusterset.ClusterID]Sight{}, tally: map[clusterset.ClusterID]*MemberStatus{}}
	for _, s := range sights {
		a.sights[s.ID] = s
	}
	status := Status{
		TypeMeta: metav1.TypeMeta{APIVersion: StatusVersion, Kind: StatusKind},
		Time:     metav1.NewTime(h.Now.UTC()), Hub: h.Place.Config.Host,
		Problems: []Problem{}, Members: []MemberStatus{}, Services: []ServiceStatus{},
	}
	for _, u := range unreached {
		status.Unreached = append(status.Unreached, UnreachedStatus{u.Place, u.Err.Error()})
	}
	ids := h.Records.Members()
	slices.Sort(ids)
	for _, id := range ids {
		m := a.member(id)
		a.tally[id] = &m
	}
	importers := a.importers()
	for _, key := range sortedKeys(h.Records.Keys()) {
		known := h.Records.Service(key)
		status.Services = append(status.Services, a.service(key, known, importers[key]))
		a.problemsOfService(key, known, status.Services[len(status.Services)-1])
	}
	for _, id := range ids {
		status.Members = append(status.Members, *a.tally[id])
		a.problemsOfMember(*a.tally[id])
		if s, ok := a.sights[id]; ok {
			a.problemsOfSight(s)
		}
	}
	a.problemOfSkew(status.Members)
	status.Problems = append(status.Problems, a.problems...)
	slices.SortStableFunc(status.Problems, byImportance)
	return status
}

// assessment is a Status in the making.
type assessment struct {
	hub      *Hub
	sights   map[clusterset.ClusterID]Sight
	tally    map[clusterset.ClusterID]*MemberStatus
	problems []Problem
}

func (a *assessment) add(p Problem) { a.problems = append(a.problems, p) }

func sortedKeys(keys []clusterset.ServiceKey) []clusterset.ServiceKey {
	return slices.SortedFunc(slices.Values(keys), func(x, y clusterset.ServiceKey) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
}

// member returns a member without what its services say of it.
func (a *assessment) member(id clusterset.ClusterID) MemberStatus {
	life := a.hub.lifeOf(id)
	m := MemberStatus{ID: id, State: life.state(), Publication: string(a.hub.Publication(id))}
	if beat := a.hub.Records.Heartbeat(id); beat != nil {
		m.Version = beat.Spec.AgentVersion
	}
	if life.known {
		m.SilentSeconds = new(int64(life.silence / time.Second))
	}
	sight, reached := a.sights[id]
	if !reached {
		return m
	}
	m.Context = sight.Context
	if sight.Err != nil {
		return m
	}
	imports, pending := 0, 0
	for i := range sight.Imports {
		if !clusterset.IsManaged(sight.Imports[i].Labels) {
			continue
		}
		imports++
		if isPending(&sight.Imports[i]) {
			pending++
		}
	}
	m.Imports, m.PendingDeletions = &imports, &pending
	return m
}

func isPending(serviceImport *mcsv1beta1.ServiceImport) bool {
	return meta.IsStatusConditionTrue(serviceImport.Status.Conditions, conditions.TypeDeletionPending)
}

// importers returns who of those that were reached imports what, sorted.
func (a *assessment) importers() map[clusterset.ServiceKey][]clusterset.ClusterID {
	result := map[clusterset.ServiceKey][]clusterset.ClusterID{}
	for id, s := range a.sights {
		for i := range s.Imports {
			if object := &s.Imports[i]; clusterset.IsManaged(object.Labels) {
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

// service returns a service, and adds it to what its exporters have.
func (a *assessment) service(key clusterset.ServiceKey, known hub.Service, importers []clusterset.ClusterID) ServiceStatus {
	s := ServiceStatus{
		Namespace: key.Namespace, Name: key.Name, Exporters: []ExporterStatus{}, Importers: importers, Refused: known.RefusedTotal,
	}
	counts := endpointCounts(known.Slices)
	for _, export := range known.Exports {
		e := ExporterStatus{Cluster: export.Cluster, Endpoints: counts[export.Cluster].Endpoints, ReadyEndpoints: counts[export.Cluster].ReadyEndpoints}
		s.Exporters = append(s.Exporters, e)
		if m := a.tally[export.Cluster]; m != nil {
			m.Exports++
			m.Endpoints += e.Endpoints
			m.ReadyEndpoints += e.ReadyEndpoints
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

// endpointCounts counts the endpoints of each cluster. One with addresses of both families stands in a slice of each, and
// is counted once: the larger family counts.
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

// reasons are the kinds of problems in the order in which they are told.
var reasons = []Reason{
	ReasonMemberSilent, ReasonMemberNeverHeard, ReasonRecordRefused, ReasonExportInvalid, ReasonExportFailed,
	ReasonImportNotReady, ReasonImportObstructed, ReasonMemberUnreadable, ReasonDeletionPending, ReasonConflict, ReasonNoReadyEndpoints, ReasonEndpointsLeftOut,
	ReasonSettingsLeftOut, ReasonPublicationPartial, ReasonVersionSkew,
}

func byImportance(a, b Problem) int {
	return cmp.Or(
		strings.Compare(string(a.Severity), string(b.Severity)), // "error" is before "warning"
		cmp.Compare(slices.Index(reasons, a.Reason), slices.Index(reasons, b.Reason)),
		cmp.Compare(a.Service, b.Service), cmp.Compare(a.Member, b.Member),
	)
}
