// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"maps"
	"slices"
	"sync"
	"time"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Store holds what the hub is known to hold, and tells its subscribers which services change. It outlives the
// connection: what was seen last counts until something newer is seen.
type Store struct {
	own    clusterset.ClusterID
	denied clusterset.Fence

	mu          sync.RWMutex
	members     map[clusterset.ClusterID]*hubv1alpha1.Member
	heartbeats  map[clusterset.ClusterID]*hubv1alpha1.Heartbeat
	services    map[clusterset.ServiceKey]map[clusterset.ClusterID]*hubv1alpha1.PublishedService
	endpoints   map[clusterset.ServiceKey]map[clusterset.ClusterID]map[string]*hubv1alpha1.PublishedEndpoints
	listed      map[kind]bool
	subscribers []func(Event)
	listeners   []func(Sign)
	// renewals are the versions of the members' last heartbeats. They outlive a new listing, which may bring a newer one.
	renewals map[clusterset.ClusterID]string
	// listing counts the lists that have been taken over.
	listing int
	// seen are the resource versions up to which the records of a kind have been seen.
	seen map[kind]string
	// published counts the PublishedServices of each member.
	published map[clusterset.ClusterID]int
	// inNamespace are the services that there are records of, by namespace.
	inNamespace map[string]map[clusterset.ServiceKey]struct{}
	absences
	// away says that the hub could not be read before it had told what it holds.
	away bool

	// waiting are the services that this cluster has imported and of which the hub lacks records, with the clusters whose
	// records are missing, sorted. It has a lock of its own, as readers of the store write it.
	waitMu  sync.Mutex
	waiting map[clusterset.ServiceKey][]clusterset.ClusterID
}

// Event says for which services the hub's records, or what they mean, may have changed.
type Event struct {
	// Key is the one service concerned, unless All is set.
	Key clusterset.ServiceKey
	// Cluster is the member, this cluster or another, whose record has changed; empty if no record has changed, but what is
	// known of a member.
	Cluster clusterset.ClusterID
	// Endpoints says that the record is one of endpoints, and Deleted that it was deleted.
	Endpoints, Deleted bool
	// All says that every service may be concerned, those that the hub does not hold included.
	All bool
	// Backlog says that this was found by listing the hub, not by watching it: a live change goes first.
	Backlog bool
}

// NewStore returns an empty store for a member. denied holds the ranges that no other member may announce to it.
func NewStore(own clusterset.ClusterID, denied clusterset.Fence) *Store {
	return &Store{
		own:        own,
		denied:     denied,
		members:    map[clusterset.ClusterID]*hubv1alpha1.Member{},
		heartbeats: map[clusterset.ClusterID]*hubv1alpha1.Heartbeat{},
		services:   map[clusterset.ServiceKey]map[clusterset.ClusterID]*hubv1alpha1.PublishedService{},
		endpoints:  map[clusterset.ServiceKey]map[clusterset.ClusterID]map[string]*hubv1alpha1.PublishedEndpoints{},
		listed:     map[kind]bool{},
		renewals:   map[clusterset.ClusterID]string{},
		seen:       map[kind]string{},
		published:  map[clusterset.ClusterID]int{},
		absences:   newAbsences(),
		waiting:    map[clusterset.ServiceKey][]clusterset.ClusterID{},

		inNamespace: map[string]map[clusterset.ServiceKey]struct{}{},
	}
}

// Subscribe has notify called with every change from now on. It must not block and must not call the store.
func (s *Store) Subscribe(notify func(Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers = append(s.subscribers, notify)
}

// Sign is a sign of a member's life, or of its end.
type Sign struct {
	Cluster clusterset.ClusterID
	Says    Saying
}

// Saying is what a Sign says.
type Saying string

// What a Sign says.
const (
	// Exists: there is such a member, or a heartbeat of it that was not known before; or this cluster's own is gone.
	Exists Saying = "exists"
	// Renewed: its heartbeat was renewed since it was last seen.
	Renewed Saying = "renewed"
	// Left: it is no member any more.
	Left Saying = "left"
)

// Listen has notify called with every sign of a member's life from now on. It must not block and must not call the
// store.
func (s *Store) Listen(notify func(Sign)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, notify)
	for id := range s.members {
		notify(Sign{id, Exists})
	}
}

// RefreshMember has every subscriber look again at the services that a member exports or that wait for it.
func (s *Store) RefreshMember(id clusterset.ClusterID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify(s.concerning(id)...)
}

// Refresh has every subscriber look at all services again, for reasons that lie outside the store.
func (s *Store) Refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify(Event{All: true, Backlog: true})
}

// Listing counts the lists of the hub that have been taken over. What the hub held before the last one, it may have lost.
func (s *Store) Listing() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.listing
}

// Synced reports whether the hub's records of all kinds have been seen, this cluster's own Member among them. A hub
// that does not know us is not the hub of our clusterset, or has lost its memory.
func (s *Store) Synced() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.synced()
}

func (s *Store) synced() bool { return s.isListed() && s.members[s.own] != nil }

func (s *Store) isListed() bool { return len(s.listed) == len(kinds) }

// Heard reports whether the hub has told what it holds, or is known to be away. Before that, nobody can say whether what
// is to be read of it will come in a moment.
func (s *Store) Heard() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.away || s.isListed()
}

// Missed notes that the hub could not be read. If nothing is known of it yet, every service is looked at the first time:
// whoever waited to hear of the hub goes on without.
func (s *Store) Missed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away || s.isListed() {
		return
	}
	s.away = true
	s.notify(Event{All: true, Backlog: true})
}

// Member returns the Member of a cluster as the hub's administrator wrote it; nil if none is known. It must not be
// changed.
func (s *Store) Member(id clusterset.ClusterID) *hubv1alpha1.Member {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.members[id]
}

// Record returns what a cluster has published of a service, as it stands on the hub; nil where nothing is known. It must not
// be changed.
func (s *Store) Record(id clusterset.ClusterID, key clusterset.ServiceKey) *hubv1alpha1.PublishedService {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.services[key][id]
}

// Heartbeat returns the last Heartbeat of a cluster; nil if none is known. It must not be changed.
func (s *Store) Heartbeat(id clusterset.ClusterID) *hubv1alpha1.Heartbeat {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.heartbeats[id]
}

// longestInterval is the most that a member may announce as the time between its heartbeats, as the schema says too.
const longestInterval = 5 * time.Minute

// HeartbeatInterval returns the time between heartbeats that a member announces, at most five minutes; 0 where it announces none.
func (s *Store) HeartbeatInterval(id clusterset.ClusterID) time.Duration {
	heartbeat := s.Heartbeat(id)
	if heartbeat == nil {
		return 0
	}
	return min(max(0, time.Duration(heartbeat.Spec.IntervalSeconds)*time.Second), longestInterval)
}

// OwnServices returns of how many services this cluster has records.
func (s *Store) OwnServices() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.published[s.own]
}

// OwnKeys returns the services that this cluster has records of, in no order.
func (s *Store) OwnKeys() []clusterset.ServiceKey {
	s.mu.RLock()
	defer s.mu.RUnlock()
	keys := map[clusterset.ServiceKey]struct{}{}
	for key, records := range s.services {
		if records[s.own] != nil {
			keys[key] = struct{}{}
		}
	}
	for key, records := range s.endpoints {
		if records[s.own] != nil {
			keys[key] = struct{}{}
		}
	}
	return slices.Collect(maps.Keys(keys))
}
