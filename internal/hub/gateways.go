// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tombolo-mcs/tombolo/internal/record"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// gateway is the PublishedGateway of a member.
type gateway struct {
	record *hubv1alpha1.PublishedGateway
	// refused is why this cluster refuses the record; nil if it does not. It changes only with the record, its Member or the local Member:
	// the check parses certificates, so services do not repeat it.
	refused error
}

// gatewayTable has the PublishedGateways of all members.
type gatewayTable struct {
	records map[clusterset.ClusterID]gateway
	// withdrawn are the members whose record a watch has reported as deleted, until they publish another.
	withdrawn sets.Set[clusterset.ClusterID]
	// listed is set if the kind was listed: the hub has it.
	listed bool
	// kept are the other members that the gateways of this cluster know.
	kept []clusterset.ClusterID
}

func newGatewayTable() gatewayTable {
	return gatewayTable{records: map[clusterset.ClusterID]gateway{}, withdrawn: sets.New[clusterset.ClusterID]()}
}

// Gateways is what the store has about the gateways of all members. The records must not be changed.
type Gateways struct {
	// Listed is set if the hub's PublishedGateways were listed.
	Listed bool
	// Own is the record of this cluster; nil if there is none.
	Own *hubv1alpha1.PublishedGateway
	// Usable are the records of the other members that are not refused.
	Usable map[clusterset.ClusterID]*hubv1alpha1.PublishedGateway
	// Refused are the records of other members that are refused.
	Refused map[clusterset.ClusterID]RefusedGateway
	// Revoked are the clusters whose gateways must not be used: they are suspended, have left, or have deleted their record. What is in
	// none of the three is missing.
	Revoked sets.Set[clusterset.ClusterID]
	// Denied are the ranges to which gateways of other members must not lead: those of the pods and Services of this cluster.
	Denied []netip.Prefix
	// OwnRanges are the ranges of this cluster, in which its gateways find backends.
	OwnRanges clusterset.OwnRanges
}

// RefusedGateway is a record, and why it is refused.
type RefusedGateway struct {
	Record *hubv1alpha1.PublishedGateway
	Reason error
}

// Gateways returns what the store has about the gateways of all members.
func (s *Store) Gateways() Gateways {
	s.mu.RLock()
	defer s.mu.RUnlock()
	result := Gateways{
		Listed: s.gateways.listed, Own: s.gateways.records[s.own].record,
		Usable: map[clusterset.ClusterID]*hubv1alpha1.PublishedGateway{}, Refused: map[clusterset.ClusterID]RefusedGateway{},
		Revoked: s.gateways.withdrawn.Clone(), Denied: s.deniedGateways().Denied, OwnRanges: s.ownRanges,
	}
	for id := range s.left {
		result.Revoked.Insert(id)
	}
	for id := range s.members {
		g, published := s.gateways.records[id]
		switch {
		case id == s.own:
		case s.isGone(id):
			result.Revoked.Insert(id)
		case !published:
		case g.refused != nil:
			result.Refused[id] = RefusedGateway{g.record, g.refused}
		default:
			result.Usable[id] = g.record
		}
	}
	return result
}

// KeepGateways says of which other members the gateways of this cluster have RemoteGateways. The store counts these members as absent if
// they have no Member.
func (s *Store) KeepGateways(ids []clusterset.ClusterID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gateways.kept = slices.Clone(ids)
}

// putGateway stores the record of a member.
func (s *Store) putGateway(published *hubv1alpha1.PublishedGateway, id clusterset.ClusterID) {
	s.gateways.records[id] = gateway{record: published}
	s.gateways.withdrawn.Delete(id)
	s.checkGateway(id)
	s.notifyMember(MemberEvent{id, GatewayChanged})
}

// removeGateway removes the record of a member, whose deletion a watch reports.
func (s *Store) removeGateway(id clusterset.ClusterID) {
	delete(s.gateways.records, id)
	s.gateways.withdrawn.Insert(id)
	s.notifyMember(MemberEvent{id, GatewayChanged})
}

// beginGatewayList prepares the store for a list. Records of other members stay: what a list lacks may be lost. The local one must be
// written again then.
func (s *Store) beginGatewayList() {
	s.gateways.listed = true
	delete(s.gateways.records, s.own)
	s.notifyMember(MemberEvent{s.own, GatewayChanged})
}

// checkGateways checks the records that depend on a Member which has changed.
func (s *Store) checkGateways(changed clusterset.ClusterID) {
	if changed != s.own {
		s.checkGateway(changed)
		return
	}
	for id := range s.gateways.records {
		s.checkGateway(id)
	}
}

// checkGateway decides whether the record of a member is refused. Its addresses must not be those of pods and Services of this cluster
// (G4).
func (s *Store) checkGateway(id clusterset.ClusterID) {
	g, published := s.gateways.records[id]
	if member := s.members[id]; published && member != nil {
		g.refused = record.CheckGateway(g.record, member, s.deniedGateways())
		s.gateways.records[id] = g
	}
}

// deniedGateways returns the ranges to which gateways of other members must not lead.
func (s *Store) deniedGateways() clusterset.AddressRanges {
	return clusterset.AddressRanges{Denied: slices.Concat(s.denied.Denied, s.ownRanges.Pods)}
}

// prefixesOf returns the ranges of a Member.
func prefixesOf(cidrs []hubv1alpha1.CIDR) []netip.Prefix {
	var result []netip.Prefix
	for _, cidr := range cidrs {
		if prefix, err := netip.ParsePrefix(string(cidr)); err == nil { // the hub's admission policies refuse others
			result = append(result, prefix)
		}
	}
	return result
}
