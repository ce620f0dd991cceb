// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/record"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Store is the cache of the hub's objects. It notifies its subscribers of the services that change. If the connection is lost, it
// keeps its content until newer objects are read.
type Store struct {
	own    clusterset.ClusterID
	denied clusterset.AddressRanges

	mu                sync.RWMutex
	members           map[clusterset.ClusterID]*hubv1alpha1.Member
	heartbeats        map[clusterset.ClusterID]*hubv1alpha1.Heartbeat
	gateways          gatewayTable
	records           recordTable
	listed            map[kind]bool
	subscribers       []func(Event)
	memberSubscribers []func(MemberEvent)
	// properties are the valid properties of the members. Those of an absent member stay until it has left.
	properties map[clusterset.ClusterID]map[string]string
	// network is the network of this cluster, as its Member said when it was last read; empty for the default one.
	network string
	// ownRanges are the ranges of this cluster, as its Member said when it was last read.
	ownRanges clusterset.OwnRanges
	// renewals are the versions of the members' last heartbeats. A list does not clear them: it may contain a newer version.
	renewals map[clusterset.ClusterID]string
	// listing is the number of lists that were stored.
	listing int
	// seen are the resource versions up to which the records of a kind were read.
	seen map[kind]string
	// published counts the PublishedServices of each member.
	published map[clusterset.ClusterID]int
	absences
	// unreachable is set if the hub could not be read before the first list was complete.
	unreachable bool

	// waiting are the imported services with missing records, and for each the sorted IDs of the clusters whose records are missing.
	// It has its own lock, because readers of the store write it.
	waitMu  sync.Mutex
	waiting map[clusterset.ServiceKey][]clusterset.ClusterID
}

// Event reports services whose records on the hub, or the state of whose exporters, may have changed.
type Event struct {
	// Key is the service, unless All is set.
	Key clusterset.ServiceKey
	// Cluster is the member whose record has changed, local or remote; empty if the state of a member has changed, not a record.
	Cluster clusterset.ClusterID
	// Endpoints is set for a PublishedEndpoints, and Deleted if the record was deleted.
	Endpoints, Deleted bool
	// All is set if every service may have changed, including those without records.
	All bool
	// Backlog is set if the event comes from a list and not from a watch. Watch events are processed first.
	Backlog bool
}

// NewStore returns an empty store for a member. denied are the address ranges that it does not import from other members.
func NewStore(own clusterset.ClusterID, denied clusterset.AddressRanges) *Store {
	return &Store{
		own:        own,
		denied:     denied,
		ownRanges:  clusterset.OwnRanges{Services: denied.Denied},
		members:    map[clusterset.ClusterID]*hubv1alpha1.Member{},
		heartbeats: map[clusterset.ClusterID]*hubv1alpha1.Heartbeat{},
		gateways:   newGatewayTable(),
		records:    recordTable{},
		listed:     map[kind]bool{},
		properties: map[clusterset.ClusterID]map[string]string{},
		renewals:   map[clusterset.ClusterID]string{},
		seen:       map[kind]string{},
		published:  map[clusterset.ClusterID]int{},
		absences:   newAbsences(),
		waiting:    map[clusterset.ServiceKey][]clusterset.ClusterID{},
	}
}

// Subscribe calls notify for every later event. notify must not block and must not call the store.
func (s *Store) Subscribe(notify func(Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers = append(s.subscribers, notify)
}

// MemberEvent reports a change of a member, its heartbeat or its gateways.
type MemberEvent struct {
	Cluster clusterset.ClusterID
	Type    MemberEventType
}

// MemberEventType is the type of a MemberEvent.
type MemberEventType string

// The types of a MemberEvent.
const (
	// MemberSeen: the Member or its first heartbeat was read, or the local heartbeat was deleted.
	MemberSeen MemberEventType = "seen"
	// HeartbeatRenewed: the heartbeat was renewed since it was last read.
	HeartbeatRenewed MemberEventType = "renewed"
	// MemberLeft: the cluster is no longer a member.
	MemberLeft MemberEventType = "left"
	// GatewayChanged: the PublishedGateway was read or deleted, or the local one may be missing.
	GatewayChanged MemberEventType = "gateway"
)

// SubscribeMembers calls notify with MemberSeen for every member, and for every later event. notify must not block and must not call
// the store.
func (s *Store) SubscribeMembers(notify func(MemberEvent)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memberSubscribers = append(s.memberSubscribers, notify)
	for id := range s.members {
		notify(MemberEvent{id, MemberSeen})
	}
}

// RefreshMember sends events for the services that a member exports and for those that wait for it.
func (s *Store) RefreshMember(id clusterset.ClusterID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify(s.serviceEvents(id)...)
}

// Refresh sends an event for all services, after a change outside of the store, unless controllers still wait for InitialListDone.
func (s *Store) Refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh()
}

func (s *Store) refresh() {
	if s.initialListDone() {
		s.notify(Event{All: true, Backlog: true})
	}
}

// Listing returns the number of lists of the hub that were stored. Each list may lack records that the hub has lost.
func (s *Store) Listing() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.listing
}

// Synced reports whether all kinds were listed and the local Member exists. A hub without the local Member is the wrong hub, or has
// lost its data.
func (s *Store) Synced() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.synced()
}

func (s *Store) synced() bool { return s.isListed() && s.members[s.own] != nil }

func (s *Store) isListed() bool { return len(s.listed) == len(kinds) }

// InitialListDone reports whether all kinds were listed, or the hub is unreachable. Controllers wait for it.
func (s *Store) InitialListDone() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.initialListDone()
}

func (s *Store) initialListDone() bool { return s.unreachable || s.isListed() }

// MarkUnreachable records that the hub could not be read. Before the first list, it sends an event for all services, because the
// controllers wait for InitialListDone.
func (s *Store) MarkUnreachable() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.initialListDone() {
		return
	}
	s.unreachable = true
	s.refresh()
}

// Member returns the Member of a cluster; nil if there is none. It must not be changed.
func (s *Store) Member(id clusterset.ClusterID) *hubv1alpha1.Member {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.members[id]
}

// Properties returns the valid properties of each known cluster. A cluster that the store does not know has no entry; missing data
// never removes one. The inner maps must not be changed.
func (s *Store) Properties() map[clusterset.ClusterID]map[string]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.properties)
}

// Neighbors returns the other members of this cluster's network, sorted.
func (s *Store) Neighbors() []clusterset.ClusterID {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var result []clusterset.ClusterID
	for id, member := range s.members {
		if id != s.own && record.NetworkOf(member) == s.network {
			result = append(result, id)
		}
	}
	slices.Sort(result)
	return result
}

// Record returns the PublishedService of a cluster for a service; nil if there is none. It must not be changed.
func (s *Store) Record(id clusterset.ClusterID, key clusterset.ServiceKey) *hubv1alpha1.PublishedService {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.records.of(key).service(id)
}

// Heartbeat returns the last Heartbeat of a cluster; nil if there is none. It must not be changed.
func (s *Store) Heartbeat(id clusterset.ClusterID) *hubv1alpha1.Heartbeat {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.heartbeats[id]
}

// HeartbeatInterval returns the heartbeat interval of a member, at most five minutes; 0 if it is not known.
func (s *Store) HeartbeatInterval(id clusterset.ClusterID) time.Duration {
	heartbeat := s.Heartbeat(id)
	if heartbeat == nil {
		return 0
	}
	return min(max(0, time.Duration(heartbeat.Spec.IntervalSeconds)*time.Second), liveness.MaxInterval)
}

// LocalServices returns the number of services with local records, and of which list of the hub that is.
func (s *Store) LocalServices() (services, listing int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.published[s.own], s.listing
}

// LocalKeys returns the services with local records, in no order.
func (s *Store) LocalKeys() []clusterset.ServiceKey {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var keys []clusterset.ServiceKey
	for key, r := range s.records.all() {
		if r.service(s.own) != nil || len(r.endpointsOf(s.own)) > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}
