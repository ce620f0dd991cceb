// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/record"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// kind is a kind of object that is read from the hub.
type kind string

const (
	kindMember    kind = "members"
	kindHeartbeat kind = "heartbeats"
	kindService   kind = "publishedservices"
	kindEndpoints kind = "publishedendpoints"
	// kindGateway is not one of kinds: a hub may not have it.
	kindGateway kind = "publishedgateways"
)

var kinds = [...]kind{kindMember, kindHeartbeat, kindService, kindEndpoints}

// table is the part of a Store that the reflector of one kind writes (client-go's ReflectorStore). It ignores objects outside of
// the members' namespaces.
type table struct {
	store *Store
	kind  kind
}

// Add stores an object from the watch.
func (t table) Add(object any) error { return t.Update(object) }

// Update stores an object from the watch.
func (t table) Update(object any) error {
	return t.handle(object, func(o client.Object, id clusterset.ClusterID) []Event {
		switch o := o.(type) {
		case *hubv1alpha1.Heartbeat:
			return t.store.renew(o, id)
		case *hubv1alpha1.Member:
			t.store.put(o, id)
			return t.store.memberChangeEvents(id)
		case *hubv1alpha1.PublishedGateway:
			t.store.put(o, id)
			return t.store.serviceEvents(id)
		}
		return t.store.put(o, id)
	})
}

// Delete removes an object whose deletion the watch reports.
func (t table) Delete(object any) error {
	return t.handle(object, func(o client.Object, id clusterset.ClusterID) []Event { return t.store.remove(o, id) })
}

// UpdateResourceVersion stores the version of the watch. Bookmarks change it without an event.
func (t table) UpdateResourceVersion(version string) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	t.store.notify(t.store.advance(t.kind, version)...)
}

// Resync does nothing.
func (t table) Resync() error { return nil }

// Replace replaces all objects of the kind by those of a list, and sends an event for all services: records that are missing from the
// list may be deleted or lost. Before the first list of the last kind, controllers wait for InitialListDone.
func (t table) Replace(objects []any, version string) error {
	s := t.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear(t.kind)
	if t.kind == kindGateway {
		s.beginGatewayList()
	} else {
		s.listed[t.kind], s.seen[t.kind] = true, version
		s.listing++
		s.resetConfirmed()
	}
	for _, object := range objects {
		if o, ok := object.(client.Object); ok {
			if id, ok := clusterset.ClusterIDOfHubNamespace(o.GetNamespace()); ok {
				s.put(o, id)
			}
		}
	}
	s.refresh()
	return nil
}

// handle applies a change that the watch reports, and sends the events for it.
func (t table) handle(object any, change func(client.Object, clusterset.ClusterID) []Event) error {
	o, ok := object.(client.Object)
	if !ok {
		return fmt.Errorf("%T from the hub is not an object", object)
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

func (s *Store) notifyMember(event MemberEvent) {
	if event.Type == MemberLeft {
		delete(s.renewals, event.Cluster)
	}
	for _, listener := range s.memberSubscribers {
		listener(event)
	}
}

func (s *Store) clear(k kind) {
	switch k {
	case kindMember:
		clear(s.members)
	case kindHeartbeat:
		clear(s.heartbeats)
	case kindGateway: // beginGatewayList
	case kindService:
		clear(s.published)
		for key := range s.records.all() {
			s.records.edit(key, func(r *records) { r.services = nil })
		}
	case kindEndpoints:
		for key := range s.records.all() {
			s.records.edit(key, func(r *records) { r.endpoints = nil })
		}
	}
}

// put stores an object of a member and returns the events for it.
func (s *Store) put(object client.Object, id clusterset.ClusterID) []Event {
	object.SetManagedFields(nil)
	switch o := object.(type) {
	case *hubv1alpha1.Member:
		s.members[id] = o
		s.properties[id] = record.PropertiesOf(o)
		if id == s.own {
			s.network, s.ownRanges.Pods, s.ownRanges.Nodes = record.NetworkOf(o), prefixesOf(o.Spec.PodCIDRs), prefixesOf(o.Spec.NodeCIDRs)
		}
		delete(s.left, id)
		s.checkGateways(id)
		s.notifyMember(MemberEvent{id, MemberSeen})
	case *hubv1alpha1.Heartbeat:
		s.heartbeats[id] = o
		switch last, seen := s.renewals[id]; {
		case !seen: // the heartbeat may be old
			s.notifyMember(MemberEvent{id, MemberSeen})
		case isLater(o.ResourceVersion, last):
			s.notifyMember(MemberEvent{id, HeartbeatRenewed})
		}
		s.renewals[id] = o.ResourceVersion
	case *hubv1alpha1.PublishedGateway:
		s.putGateway(o, id)
	case *hubv1alpha1.PublishedService:
		if key, ok := record.KeyOfService(o.Name); ok {
			compactService(o, key)
			s.records.edit(key, func(r *records) {
				var replaced bool
				if r.services, replaced = with(r.services, id, o); !replaced {
					s.published[id]++
				}
			})
			s.deleted.Remove(recordKey{cluster: id, key: key})
			return []Event{{Key: key, Cluster: id}}
		}
	case *hubv1alpha1.PublishedEndpoints:
		if key, ok := record.KeyOfEndpoints(o.Name); ok {
			compactEndpoints(o, key)
			s.records.edit(key, func(r *records) { r.endpoints, _ = with(r.endpoints, id, o) })
			s.deleted.Remove(recordKey{id, key, sliceOfRecord(o.Name)})
			return []Event{{Key: key, Cluster: id, Endpoints: true}}
		}
	}
	return nil
}

// memberChangeEvents returns the events for a change of a Member: for all services if it is the local one.
func (s *Store) memberChangeEvents(id clusterset.ClusterID) []Event {
	if id == s.own {
		return []Event{{All: true}}
	}
	return s.serviceEvents(id)
}

// remove removes an object of a member and returns the events for it.
func (s *Store) remove(object client.Object, id clusterset.ClusterID) []Event {
	switch o := object.(type) {
	case *hubv1alpha1.Member:
		delete(s.members, id)
		return append(s.leave(id), s.memberChangeEvents(id)...)
	case *hubv1alpha1.Heartbeat:
		delete(s.heartbeats, id)
		delete(s.behind, id)
		if id == s.own { // controllers/presence creates it again
			s.notifyMember(MemberEvent{id, MemberSeen})
		}
	case *hubv1alpha1.PublishedGateway:
		s.removeGateway(id)
		return s.serviceEvents(id)
	case *hubv1alpha1.PublishedService:
		if key, ok := record.KeyOfService(o.Name); ok && s.records.of(key).service(id) != nil {
			s.records.edit(key, func(r *records) { r.services = without(r.services, id, o.Name) })
			s.published[id]--
			s.deleted.Add(recordKey{cluster: id, key: key}, nil)
			return []Event{{Key: key, Cluster: id, Deleted: true}}
		}
	case *hubv1alpha1.PublishedEndpoints:
		if key, ok := record.KeyOfEndpoints(o.Name); ok {
			s.records.edit(key, func(r *records) { r.endpoints = without(r.endpoints, id, o.Name) })
			s.deleted.Add(recordKey{id, key, sliceOfRecord(o.Name)}, nil)
			return []Event{{Key: key, Cluster: id, Endpoints: true, Deleted: true}}
		}
	}
	return nil
}

// sliceOfRecord returns the ID of the slice of a PublishedEndpoints, which is the last part of its name.
func sliceOfRecord(name string) string { return name[strings.LastIndex(name, ".")+1:] }
