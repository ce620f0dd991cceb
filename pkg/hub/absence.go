// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"maps"
	"slices"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/record"
)

// Imported is what this cluster has of a service: the clusters that its import or its mirrored slices name, each with the
// IDs of these slices.
type Imported map[clusterset.ClusterID][]string

// Missing is what the hub does not hold of a cluster's service, though nothing says that the cluster has deleted it (design
// decision 7).
type Missing struct {
	// Export says that the export is missing, and so all slices count as missing.
	Export bool
	// Slices are the IDs of the missing slices, sorted.
	Slices []string
}

// recordKey identifies the record of a service, or that of one of its slices.
type recordKey struct {
	key clusterset.ServiceKey
	// slice is empty for the export.
	slice string
}

// absences is what the store knows of records and members that the hub does not hold.
type absences struct {
	// confirmed are the members whose missing records are deleted: since the last list their heartbeat was renewed, said
	// Complete, and all that it spoke of has been seen. behind are those of which not all has been seen yet.
	confirmed, behind map[clusterset.ClusterID]struct{}
	// deleted are the records of unconfirmed members whose deletion was watched.
	deleted map[clusterset.ClusterID]map[recordKey]struct{}
	// left are the clusters that are no members: the deletion of their Member was watched, or they were absent for too long.
	left map[clusterset.ClusterID]struct{}
}

func newAbsences() absences {
	return absences{
		confirmed: map[clusterset.ClusterID]struct{}{}, behind: map[clusterset.ClusterID]struct{}{},
		deleted: map[clusterset.ClusterID]map[recordKey]struct{}{}, left: map[clusterset.ClusterID]struct{}{},
	}
}

// maxDeleted bounds the deletions that are remembered of an unconfirmed member: many times what its quota lets it have. If
// there are more, all are forgotten, and what this cluster still has of them stays until the member is confirmed.
const maxDeleted = 10_000

// noteDeleted remembers a watched deletion for as long as the member is not confirmed.
func (s *Store) noteDeleted(id clusterset.ClusterID, r recordKey) {
	if s.isConfirmed(id) {
		return
	}
	if s.deleted[id] == nil || len(s.deleted[id]) >= maxDeleted {
		s.deleted[id] = map[recordKey]struct{}{}
	}
	s.deleted[id][r] = struct{}{}
}

func (s *Store) isDeleted(id clusterset.ClusterID, r recordKey) bool {
	_, deleted := s.deleted[id][r]
	return deleted
}

func (s *Store) isConfirmed(id clusterset.ClusterID) bool {
	_, confirmed := s.confirmed[id]
	return confirmed
}

// isGone reports whether a cluster exports nothing, whatever records of it there are: it is no member, or is suspended.
func (s *Store) isGone(id clusterset.ClusterID) bool {
	_, left := s.left[id]
	return left || s.members[id] != nil && s.members[id].Spec.Suspended
}

// doubtLists is called with every list of the hub: what is missing there proves nothing until heartbeats say so again.
func (s *Store) doubtLists() {
	clear(s.confirmed)
	clear(s.behind)
}

// renew takes over a heartbeat from the watch, and returns what has to be looked at because of it.
func (s *Store) renew(beat *hubv1alpha1.Heartbeat, id clusterset.ClusterID) []Event {
	last := s.heartbeats[id]
	s.put(beat, id)
	switch {
	case last != nil && last.ResourceVersion == beat.ResourceVersion:
		return nil
	case s.isConfirmed(id): // since then, deletions are watched
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

// confirm makes what is missing of a member deleted, and returns the services that have waited for it.
func (s *Store) confirm(id clusterset.ClusterID) []Event {
	s.confirmed[id] = struct{}{}
	delete(s.behind, id)
	delete(s.deleted, id)
	return s.waitingFor(id)
}

// hasSeenAllOf reports whether the store holds what a member's heartbeat speaks of. Each kind is watched by itself, so a
// heartbeat may overtake the records; and a hub that has lost records holds fewer than the member has published.
func (s *Store) hasSeenAllOf(id clusterset.ClusterID, beat *hubv1alpha1.Heartbeat) bool {
	return s.hasSeen(kindService, beat.Spec.ServicesVersion) && s.hasSeen(kindEndpoints, beat.Spec.EndpointsVersion) &&
		s.published[id] >= int(beat.Spec.Services)
}

// advance notes that a record of a kind has been seen at a version, and returns what has to be looked at because of it.
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

// missing returns what the hub does not hold of that which this cluster has imported, though nothing says that it is deleted.
func (s *Store) missing(key clusterset.ServiceKey, have Imported) map[clusterset.ClusterID]Missing {
	result := map[clusterset.ClusterID]Missing{}
	for id, ids := range have {
		if m := s.missingOf(id, key, ids); m.Export || len(m.Slices) > 0 {
			result[id] = m
		}
	}
	return result
}

func (s *Store) missingOf(id clusterset.ClusterID, key clusterset.ServiceKey, ids []string) Missing {
	all := Missing{Export: true, Slices: slices.Sorted(slices.Values(ids))}
	synced := s.synced()
	switch {
	case id == s.own && s.isListed(): // its own API server says what it exports
		return Missing{}
	case synced && (s.isGone(id) || s.isConfirmed(id) && s.members[id] != nil):
		return Missing{}
	case synced && (s.isUnused(id, key) || s.isDeleted(id, recordKey{key: key})):
		return Missing{}
	case s.members[id] == nil || s.services[key][id] == nil: // records without a Member are not used
		return all
	}
	return Missing{Slices: slices.DeleteFunc(all.Slices, func(slice string) bool {
		_, held := s.endpoints[key][id][record.EndpointsName(key, slice)]
		return held || synced && s.isDeleted(id, recordKey{key, slice})
	})}
}

// isUnused reports whether the hub holds a member's record of a service that stands for no export: it is inactive or refused.
func (s *Store) isUnused(id clusterset.ClusterID, key clusterset.ServiceKey) bool {
	published, member := s.services[key][id], s.members[id]
	if published == nil || member == nil {
		return false
	}
	if published.Spec.Inactive {
		return true
	}
	p, err := record.NewPolicy(member, s.denied)
	if err == nil {
		_, err = record.DecodeService(published, p)
	}
	return err != nil
}

// wait remembers for which members a service waits, so that it is looked at when more is known of them.
func (s *Store) wait(key clusterset.ServiceKey, missing map[clusterset.ClusterID]Missing) {
	s.waitMu.Lock()
	defer s.waitMu.Unlock()
	if len(missing) == 0 {
		delete(s.waiting, key)
		return
	}
	s.waiting[key] = slices.Sorted(maps.Keys(missing))
}

// Forget ends the waiting of a service that this cluster does not import.
func (s *Store) Forget(key clusterset.ServiceKey) { s.wait(key, nil) }

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

// Unconfirmed returns, for each other cluster of which this one has imported what the hub does not hold, how many services
// wait until its heartbeat confirms the deletion. It is empty before the hub's records have been seen.
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

// Absent returns the clusters for which services wait and that have no Member on the hub, sorted; none while the hub's records
// have not been seen.
func (s *Store) Absent() []clusterset.ClusterID {
	waited := s.Unconfirmed()
	s.mu.RLock()
	defer s.mu.RUnlock()
	maps.DeleteFunc(waited, func(id clusterset.ClusterID, _ int) bool { return s.members[id] != nil || s.isGone(id) })
	return slices.Sorted(maps.Keys(waited))
}

// Expel makes a cluster whose Member was absent for too long one that exports nothing. A Member makes it a member again.
func (s *Store) Expel(id clusterset.ClusterID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.members[id] == nil {
		s.notify(s.leave(id)...)
	}
}

// leave notes that a cluster is no member, and returns what has to be looked at because of it.
func (s *Store) leave(id clusterset.ClusterID) []Event {
	s.left[id] = struct{}{}
	delete(s.deleted, id)
	s.sign(Sign{id, Left})
	return s.concerning(id)
}

// concerning returns an event for each service that a member has a record of, or that waits for it. Those that others export
// too come first, as the member's state matters to these alone.
func (s *Store) concerning(id clusterset.ClusterID) []Event {
	events := s.waitingFor(id)
	for key, records := range s.services {
		if records[id] != nil {
			events = append(events, Event{Key: key, Backlog: len(records) == 1})
		}
	}
	return events
}
