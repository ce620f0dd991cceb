// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"

	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Service returns what the store has about a service. Records of clusters that are suspended or have no Member are ignored.
func (s *Store) Service(key clusterset.ServiceKey) sources.Hub {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.service(key)
}

// Import returns what the store has about a service that this cluster imports. have are the exporters and slices of the existing
// import, of which the missing records are returned. Service and missing records are read under one lock: a list between two reads
// could make unread records look deleted. The service is enqueued again if the state of a member with missing records changes.
func (s *Store) Import(key clusterset.ServiceKey, have sources.Imported) sources.Hub {
	s.mu.RLock()
	defer s.mu.RUnlock()
	result := s.service(key)
	result.Missing = s.missing(key, have)
	s.wait(key, result.Missing)
	return result
}

func (s *Store) service(key clusterset.ServiceKey) sources.Hub {
	all := s.records.of(key)
	result := sources.Hub{
		Exporters: map[clusterset.ClusterID]reach.Cluster{}, LocalNetwork: s.network, OwnRanges: s.ownRanges, LocalMember: s.members[s.own], Local: all.service(s.own),
		LocalEndpoints: all.endpointsOf(s.own), NotAllowed: s.notAllowed(key), Listed: s.isListed(),
	}
	result.LocalExport = localExport(result.Local, result.LocalMember)
	for _, e := range all.services {
		if id := e.cluster; id != s.own && s.members[id] != nil && !s.isGone(id) && !record.IsInactive(e.record) {
			s.addSource(&result, key, id, all)
		}
	}
	return result
}

// localExport returns the export that other clusters decode from the local record; nil if there is no record, or they refuse it.
func localExport(own *hubv1alpha1.PublishedService, member *hubv1alpha1.Member) *clusterset.Export {
	if own == nil || record.IsInactive(own) || member == nil {
		return nil
	}
	p, err := record.NewPolicy(member, clusterset.AddressRanges{})
	if err != nil { // the hub's admission policies prevent this
		return nil
	}
	export, err := record.DecodeService(own, p)
	if err != nil { // the hub's admission policies prevent this
		return nil
	}
	return &export
}

// notAllowed returns the reason why the local Member does not allow this cluster to export a service, worded like the hub's
// admission policy; nil if the Member allows it or is not known.
func (s *Store) notAllowed(key clusterset.ServiceKey) error {
	member := s.members[s.own]
	if member == nil {
		return nil
	}
	if member.Spec.Suspended {
		return fmt.Errorf("the Member of cluster %s is suspended: an administrator of the hub sets spec.suspended to false", s.own)
	}
	p, err := record.NewPolicy(member, clusterset.AddressRanges{})
	if err != nil { // the hub's admission policies prevent this
		return err
	}
	if !p.Allows(hubv1alpha1.NamespaceName(key.Namespace)) {
		return fmt.Errorf("the Member of cluster %s does not allow namespace %s: do not export from it, or let an administrator of the hub add it to the Member",
			s.own, key.Namespace)
	}
	return nil
}

// addSource adds the records of one member to result.
func (s *Store) addSource(result *sources.Hub, key clusterset.ServiceKey, id clusterset.ClusterID, all records) {
	refused := refusals{cluster: id}
	s.decode(result, &refused, key, all)
	result.Refused = append(result.Refused, refused.list()...)
	result.RefusedTotal += refused.total
}

// decode adds the export and the slices of one member to result, unless they are refused. Slices are used only if the
// PublishedService is not refused. Slices that exceed the limits are not decoded.
func (s *Store) decode(result *sources.Hub, refused *refusals, key clusterset.ServiceKey, all records) {
	id := refused.cluster
	p, err := record.NewPolicy(s.members[id], s.denied)
	if err != nil {
		refused.add(err)
		return
	}
	published := all.service(id)
	export, err := record.DecodeService(published, p)
	if err != nil {
		refused.addRecord(published.Name, err)
		return
	}
	if !s.isGranted(export) {
		result.Ungranted = append(result.Ungranted, export)
		return
	}
	result.Exports = append(result.Exports, export)
	exporter, err := s.exporter(id)
	result.Exporters[id] = exporter
	if s.own != "" && !reach.IsDirect(reach.Cluster{Network: s.network}, exporter) { // without a local cluster, the endpoints of all are shown
		if err != nil {
			refused.addRecord(hubv1alpha1.GatewayName, err)
		}
		return
	}
	bounded, err := clusterset.Bounded(all.endpointsOf(id), record.CountEndpoints)
	if err != nil {
		refused.add(fmt.Errorf("refused of what cluster %s contributes to service %s: %w", id, key, err))
	}
	for _, published := range bounded {
		slice, errs := record.DecodeEndpoints(published, p)
		for _, err := range errs {
			refused.addRecord(published.Name, err)
		}
		if slice != nil {
			result.Slices = append(result.Slices, *slice)
		}
	}
}

// Cluster describes a member as a source of endpoints, without its gateways; the zero Cluster if it is no member.
func (s *Store) Cluster(id clusterset.ClusterID) reach.Cluster {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.cluster(id)
}

func (s *Store) cluster(id clusterset.ClusterID) reach.Cluster {
	if member := s.members[id]; member != nil {
		return reach.Cluster{Network: record.NetworkOf(member), Publish: member.Spec.Publish}
	}
	return reach.Cluster{}
}

// isGranted reports whether this cluster imports an export; without a local cluster, all are shown.
func (s *Store) isGranted(export clusterset.Export) bool {
	return s.own == "" || export.IsGrantedTo(s.own)
}

// exporter describes a member as a source of endpoints, and returns why its gateways are refused.
func (s *Store) exporter(id clusterset.ClusterID) (reach.Cluster, error) {
	result := s.cluster(id)
	g, published := s.gateways.records[id]
	result.Gateway = published && g.refused == nil && len(g.record.Spec.Addresses) > 0
	return result, g.refused
}

// maxReasons is the number of reasons that are stored for one member and service. A member can publish many invalid records, and
// every importer stores the reasons.
const maxReasons = 10

// refusals are the reasons why records of one member, or parts of them, are refused.
type refusals struct {
	cluster clusterset.ClusterID
	reasons []error
	total   int
}

func (r *refusals) add(err error) {
	r.total++
	if r.total <= maxReasons {
		r.reasons = append(r.reasons, RefusalError{r.cluster, err})
	}
}

// addRecord adds the reason why a record, or a part of it, is refused. The reason is cut off, because it may quote long values.
func (r *refusals) addRecord(name string, err error) {
	if r.total < maxReasons {
		err = fmt.Errorf("record %s/%s on the hub is refused: %.500w", r.cluster.HubNamespace(), name, err)
	}
	r.add(err)
}

// list returns the stored reasons, and the number of the others.
func (r *refusals) list() []error {
	more := r.total - len(r.reasons)
	if more == 0 {
		return r.reasons
	}
	return append(r.reasons, RefusalError{r.cluster, fmt.Errorf("%d more records and endpoints of cluster %s are refused", more, r.cluster)})
}

// RefusalError is the reason why a record of a member, or a part of it, is refused.
type RefusalError struct {
	Cluster clusterset.ClusterID
	error
}

// Unwrap returns the reason.
func (r RefusalError) Unwrap() error { return r.error }
