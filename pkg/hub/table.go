// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/breaker"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// kind is a kind of object that is read from the hub.
type kind string

const (
	kindMember    kind = "members"
	kindHeartbeat kind = "heartbeats"
	kindService   kind = "publishedservices"
	kindEndpoints kind = "publishedendpoints"
)

var kinds = [...]kind{kindMember, kindHeartbeat, kindService, kindEndpoints}

// table is a Store as the reflector of one kind sees it (client-go's ReflectorStore). Objects that lie in no member's
// namespace are not seen at all.
type table struct {
	store *Store
	kind  kind
}

// Add takes over an object that the hub's watch announces.
func (t table) Add(object any) error { return t.Update(object) }

// Update takes over an object that the hub's watch announces.
func (t table) Update(object any) error {
	return t.live(object, func(o client.Object, id clusterset.ClusterID) []Event { return t.store.put(o, id) })
}

// Delete forgets an object whose deletion the hub's watch announces.
func (t table) Delete(object any) error {
	return t.live(object, func(o client.Object, id clusterset.ClusterID) []Event { return t.store.remove(o, id) })
}

// UpdateResourceVersion takes note of how far the hub's watch has come. Now and then it tells that where nothing changes, too.
func (t table) UpdateResourceVersion(version string) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	t.store.notify(t.store.advance(t.kind, version)...)
}

// Resync does nothing: nothing here needs to be told twice.
func (t table) Resync() error { return nil }

// Replace makes the objects of a list the only ones of their kind. Everything is concerned: what is missing from the
// list is as much news as what is on it.
func (t table) Replace(objects []any, version string) error {
	s := t.store
	s.mu.Lock()
	defer s.mu.Unlock()
	before := maps.Clone(s.members)
	s.clear(t.kind)
	s.listed[t.kind], s.seen[t.kind] = true, version
	s.holds.listing++
	for _, object := range objects {
		if o, ok := object.(client.Object); ok {
			if id, ok := clusterset.ClusterIDOfHubNamespace(o.GetNamespace()); ok {
				s.put(o, id)
			}
		}
	}
	s.compareHeartbeats()
	for id := range before {
		if s.members[id] == nil {
			s.sign(Sign{id, Left})
		}
	}
	s.notify(Event{All: true, Backlog: true})
	return nil
}

func (t table) live(object any, change func(client.Object, clusterset.ClusterID) []Event) error {
	o, ok := object.(client.Object)
	if !ok {
		return fmt.Errorf("%T from the hub is no object", object)
	}
	id, ok := clusterset.ClusterIDOfHubNamespace(o.GetNamespace())
	if !ok {
		return nil
	}
	s := t.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify(change(o, id)...)
	return nil
}

func (s *Store) notify(events ...Event) {
	for _, event := range events {
		for _, subscriber := range s.subscribers {
			subscriber(event)
		}
	}
}

func (s *Store) sign(sign Sign) {
	if sign.Says == Left {
		delete(s.renewals, sign.Cluster)
	}
	for _, listener := range s.listeners {
		listener(sign)
	}
}

func (s *Store) clear(k kind) {
	switch k {
	case kindMember:
		clear(s.members)
	case kindHeartbeat:
		clear(s.heartbeats)
	case kindService:
		clear(s.services)
	case kindEndpoints:
		clear(s.endpoints)
	}
}

// put takes over an object of a member and returns what it concerns.
func (s *Store) put(object client.Object, id clusterset.ClusterID) []Event {
	object.SetManagedFields(nil)
	switch o := object.(type) {
	case *hubv1alpha1.Member:
		s.members[id] = o
		s.sign(Sign{id, Exists})
		return []Event{{All: true}}
	case *hubv1alpha1.Heartbeat:
		before := s.knowledge(id)
		s.heartbeats[id] = o
		if !s.caughtUp(o) {
			s.behind[id] = struct{}{}
		}
		switch last, seen := s.renewals[id]; {
		case !seen: // it may be old
			s.sign(Sign{id, Exists})
		case isLater(o.ResourceVersion, last):
			s.sign(Sign{id, Renewed})
		}
		s.renewals[id] = o.ResourceVersion
		return s.changedKnowledge(id, before)
	case *hubv1alpha1.PublishedService:
		if key, ok := keyOfRecord(o.Name, partsOfService); ok {
			set(s.services, key, id, o)
			s.returned(id, breaker.Record{Key: key})
			return []Event{{Key: key, Cluster: s.other(id)}}
		}
	case *hubv1alpha1.PublishedEndpoints:
		if key, ok := keyOfRecord(o.Name, partsOfEndpoints); ok {
			if s.endpoints[key][id] == nil {
				set(s.endpoints, key, id, map[string]*hubv1alpha1.PublishedEndpoints{})
			}
			clip(o)
			s.endpoints[key][id][o.Name] = o
			s.returned(id, breaker.Record{Key: key, Slice: sliceOfRecord(o.Name)})
			return []Event{{Key: key, Cluster: s.other(id), Endpoints: true}}
		}
	}
	return nil
}

// clip gives back the room that decoding has left behind the addresses of a record: they are most of what is held.
func clip(o *hubv1alpha1.PublishedEndpoints) {
	o.Spec.Groups = slices.Clone(o.Spec.Groups)
	for i := range o.Spec.Groups {
		g := &o.Spec.Groups[i]
		g.Addresses, g.Hostnames = slices.Clone(g.Addresses), slices.Clone(g.Hostnames)
	}
}

// remove forgets an object of a member and returns what that concerns.
func (s *Store) remove(object client.Object, id clusterset.ClusterID) []Event {
	switch o := object.(type) {
	case *hubv1alpha1.Member:
		delete(s.members, id)
		s.believe(id) // its administrator has had it leave
		s.sign(Sign{id, Left})
		return []Event{{All: true}}
	case *hubv1alpha1.Heartbeat:
		before := s.knowledge(id)
		delete(s.heartbeats, id)
		if id == s.own { // whether or not it said anything, there has to be one
			s.sign(Sign{id, Exists})
		}
		return s.changedKnowledge(id, before)
	case *hubv1alpha1.PublishedService:
		if key, ok := keyOfRecord(o.Name, partsOfService); ok {
			unset(s.services, key, id)
			s.holds.withdraw(id, breaker.Record{Key: key})
			return []Event{{Key: key, Cluster: s.other(id)}}
		}
	case *hubv1alpha1.PublishedEndpoints:
		if key, ok := keyOfRecord(o.Name, partsOfEndpoints); ok {
			delete(s.endpoints[key][id], o.Name)
			s.holds.withdraw(id, breaker.Record{Key: key, Slice: sliceOfRecord(o.Name)})
			if len(s.endpoints[key][id]) == 0 {
				unset(s.endpoints, key, id)
			}
			return []Event{{Key: key, Cluster: s.other(id), Endpoints: true}}
		}
	}
	return nil
}

// changedKnowledge returns an event only where a heartbeat says something new: most of them merely say "still here".
func (s *Store) changedKnowledge(id clusterset.ClusterID, before Knowledge) []Event {
	if s.knowledge(id) == before {
		return nil
	}
	return []Event{{All: true, Backlog: true}}
}

// other returns a member's ID; empty where it is our own.
func (s *Store) other(id clusterset.ClusterID) clusterset.ClusterID {
	if id == s.own {
		return ""
	}
	return id
}

// sliceOfRecord returns the ID of the slice that a record of endpoints is for, the last part of its name.
func sliceOfRecord(name string) string { return name[strings.LastIndex(name, ".")+1:] }

func set[V any](table map[clusterset.ServiceKey]map[clusterset.ClusterID]V, key clusterset.ServiceKey, id clusterset.ClusterID, value V) {
	if table[key] == nil {
		table[key] = map[clusterset.ClusterID]V{}
	}
	table[key][id] = value
}

func unset[V any](table map[clusterset.ServiceKey]map[clusterset.ClusterID]V, key clusterset.ServiceKey, id clusterset.ClusterID) {
	delete(table[key], id)
	if len(table[key]) == 0 {
		delete(table, key)
	}
}
