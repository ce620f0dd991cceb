// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"maps"
	"slices"

	"k8s.io/utils/lru"

	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// recordKey identifies a member's record of a service, or that of one of its slices.
type recordKey struct {
	cluster clusterset.ClusterID
	key     clusterset.ServiceKey
	// slice is empty for the export.
	slice string
}

// absences decides which records that the hub lacks are deleted.
type absences struct {
	// confirmed are the members of which missing records are deleted: since the last list, their heartbeat was renewed, its
	// publication was Complete, and all records that it names were read. behind are members whose records were not all read yet.
	confirmed, behind map[clusterset.ClusterID]struct{}
	// deleted are the records for which a watch reported the deletion, until they are read again: a list that follows makes their
	// member unconfirmed, maybe before the import is deleted. If there are too many, the imports of the oldest stay until the
	// member is confirmed.
	deleted *lru.Cache
	// left are the clusters that are no longer members: a watch reported the deletion of the Member, or it was absent for too long.
	left map[clusterset.ClusterID]struct{}
}

func newAbsences() absences {
	return absences{
		confirmed: map[clusterset.ClusterID]struct{}{}, behind: map[clusterset.ClusterID]struct{}{},
		deleted: lru.New(maxDeleted), left: map[clusterset.ClusterID]struct{}{},
	}
}

// maxDeleted is the number of deleted records that are stored, of all members together.
const maxDeleted = 10_000

func (s *Store) isDeleted(r recordKey) bool {
	_, deleted := s.deleted.Get(r)
	return deleted
}

func (s *Store) isConfirmed(id clusterset.ClusterID) bool {
	_, confirmed := s.confirmed[id]
	return confirmed
}

// isGone reports whether the records of a cluster are not used, because it has left or is suspended.
func (s *Store) isGone(id clusterset.ClusterID) bool {
	_, left := s.left[id]
	return left || s.members[id] != nil && s.members[id].Spec.Suspended
}

// resetConfirmed makes all members unconfirmed. It is called for every list of the hub.
func (s *Store) resetConfirmed() {
	clear(s.confirmed)
	clear(s.behind)
}

// renew stores a heartbeat from a watch, and returns events for the services that it changes.
func (s *Store) renew(beat *hubv1alpha1.Heartbeat, id clusterset.ClusterID) []Event {
	last := s.heartbeats[id]
	s.put(beat, id)
	switch {
	case last != nil && last.ResourceVersion == beat.ResourceVersion:
		return nil
	case s.isConfirmed(id): // the watch reports every later deletion
		return nil
	case beat.Spec.Publication != hubv1alpha1.PublicationComplete:
		delete(s.behind, id)
		return nil
	case !s.hasSeenAllOf(id, beat):
		s.behind[id] = struct{}{}
		return nil
	}
	return s.confirm(id)
}

// confirm makes a member confirmed, and returns events for the services that wait for it.
func (s *Store) confirm(id clusterset.ClusterID) []Event {
	s.confirmed[id] = struct{}{}
	delete(s.behind, id)
	return s.waitingFor(id)
}

// hasSeenAllOf reports whether the store contains all records that a heartbeat names. Each kind has its own watch, so a heartbeat
// may arrive before the records. A hub that has lost records stores fewer than the member has published.
func (s *Store) hasSeenAllOf(id clusterset.ClusterID, beat *hubv1alpha1.Heartbeat) bool {
	return s.hasSeen(kindService, beat.Spec.ServicesVersion) && s.hasSeen(kindEndpoints, beat.Spec.EndpointsVersion) &&
		s.published[id] >= int(beat.Spec.Services)
}

// advance stores the version up to which a kind was read, and returns events for the services that this changes.
func (s *Store) advance(k kind, version string) []Event {
	s.seen[k] = latest(s.seen[k], version)
	var events []Event
	for id := range s.behind {
		if beat := s.heartbeats[id]; beat != nil && s.hasSeenAllOf(id, beat) {
			events = append(events, s.confirm(id)...)
		}
	}
	return events
}

// missing returns the missing records of an imported service, by cluster.
func (s *Store) missing(key clusterset.ServiceKey, have sources.Imported) map[clusterset.ClusterID]sources.Missing {
	result := map[clusterset.ClusterID]sources.Missing{}
	for id, ids := range have {
		if m := s.missingOf(id, key, ids); m.Export || len(m.Slices) > 0 {
			result[id] = m
		}
	}
	return result
}

func (s *Store) missingOf(id clusterset.ClusterID, key clusterset.ServiceKey, ids []string) sources.Missing {
	missing, all := sources.Missing{Export: true, Slices: slices.Sorted(slices.Values(ids))}, s.records.of(key)
	synced := s.synced()
	switch {
	case id == s.own && s.isListed(): // local exports are read from the local API server
		return sources.Missing{}
	case synced && (s.isGone(id) || s.isConfirmed(id) && s.members[id] != nil):
		return sources.Missing{}
	case synced && (s.isUnused(id, key) || s.isDeleted(recordKey{cluster: id, key: key})):
		return sources.Missing{}
	case s.members[id] == nil || all.service(id) == nil: // records without a Member are not used
		return missing
	}
	return sources.Missing{Slices: slices.DeleteFunc(missing.Slices, func(slice string) bool {
		_, stored := find(all.endpoints, id, record.EndpointsName(key, slice))
		return stored || synced && s.isDeleted(recordKey{id, key, slice})
	})}
}

// isUnused reports whether a member has a record of a service that is inactive, refused or not granted to this cluster.
func (s *Store) isUnused(id clusterset.ClusterID, key clusterset.ServiceKey) bool {
	published, member := s.records.of(key).service(id), s.members[id]
	if published == nil || member == nil {
		return false
	}
	if record.IsInactive(published) {
		return true
	}
	p, err := record.NewPolicy(member, s.denied)
	if err != nil {
		return true
	}
	export, err := record.DecodeService(published, p)
	return err != nil || !s.isGranted(export)
}

// wait stores for which members a service waits, so that it is reconciled when their state changes.
func (s *Store) wait(key clusterset.ServiceKey, missing map[clusterset.ClusterID]sources.Missing) {
	s.waitMu.Lock()
	defer s.waitMu.Unlock()
	if len(missing) == 0 {
		delete(s.waiting, key)
		return
	}
	s.waiting[key] = slices.Sorted(maps.Keys(missing))
}

// RemoveWaiting removes a service that is not imported from the waiting services.
func (s *Store) RemoveWaiting(key clusterset.ServiceKey) { s.wait(key, nil) }

// waitingFor returns an event for each service that waits for a member.
func (s *Store) waitingFor(id clusterset.ClusterID) []Event {
	s.waitMu.Lock()
	defer s.waitMu.Unlock()
	var events []Event
	for key, ids := range s.waiting {
		if slices.Contains(ids, id) {
			events = append(events, Event{Key: key, Backlog: true})
		}
	}
	return events
}

// Unconfirmed returns the number of services that wait for each remote cluster. It is empty before Synced.
func (s *Store) Unconfirmed() map[clusterset.ClusterID]int {
	result := map[clusterset.ClusterID]int{}
	if !s.Synced() {
		return result
	}
	s.waitMu.Lock()
	defer s.waitMu.Unlock()
	for _, ids := range s.waiting {
		for _, id := range ids {
			result[id]++
		}
	}
	delete(result, s.own)
	return result
}

// Absent returns the sorted IDs of the clusters that have no Member and that services wait for or gateways know. It is empty before
// Synced.
func (s *Store) Absent() []clusterset.ClusterID {
	waited := s.Unconfirmed()
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, id := range s.gateways.kept {
		waited[id] = 1
	}
	if !s.synced() {
		clear(waited)
	}
	maps.DeleteFunc(waited, func(id clusterset.ClusterID, _ int) bool { return s.members[id] != nil || s.isGone(id) })
	return slices.Sorted(maps.Keys(waited))
}

// MarkLeft marks a cluster without a Member as one that has left, until it has a Member again.
func (s *Store) MarkLeft(id clusterset.ClusterID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.members[id] == nil {
		s.notify(s.leave(id)...)
	}
}

// leave marks a cluster as one that has left, and returns events for the services that this changes.
func (s *Store) leave(id clusterset.ClusterID) []Event {
	s.left[id] = struct{}{}
	delete(s.gateways.records, id)
	delete(s.properties, id)
	s.notifyMember(MemberEvent{id, MemberLeft})
	return s.serviceEvents(id)
}

// serviceEvents returns an event for each service that has a record of a member or waits for it. Services with several exporters
// have priority, because the state of one member matters to these only.
func (s *Store) serviceEvents(id clusterset.ClusterID) []Event {
	events := s.waitingFor(id)
	for key, r := range s.records.all() {
		if r.service(id) != nil {
			events = append(events, Event{Key: key, Backlog: len(r.services) == 1})
		}
	}
	return events
}
