// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Snapshot contains all objects of the hub, read once.
type Snapshot struct {
	members    hubv1alpha1.MemberList
	heartbeats hubv1alpha1.HeartbeatList
	services   hubv1alpha1.PublishedServiceList
	endpoints  hubv1alpha1.PublishedEndpointsList
	gateways   hubv1alpha1.PublishedGatewayList
}

// Read lists every kind of the hub once.
func Read(ctx context.Context, c client.Reader) (*Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, listDeadline)
	defer cancel()
	s := &Snapshot{}
	for _, list := range []client.ObjectList{&s.members, &s.heartbeats, &s.services, &s.endpoints} {
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list %s: %w", clusterset.KindOf(list), err)
		}
	}
	if err := client.IgnoreNotFound(c.List(ctx, &s.gateways)); err != nil { // a hub of an earlier version does not have the kind
		return nil, fmt.Errorf("list %s: %w", clusterset.KindOf(&s.gateways), err)
	}
	return s, nil
}

// Renewed returns the time of each cluster's last heartbeat by the hub's clock, from the managed fields. It is zero if there are none.
func (s *Snapshot) Renewed() map[clusterset.ClusterID]time.Time {
	result := map[clusterset.ClusterID]time.Time{}
	for i := range s.heartbeats.Items {
		if id, ok := clusterset.ClusterIDOfHubNamespace(s.heartbeats.Items[i].Namespace); ok {
			result[id] = RenewedAt(&s.heartbeats.Items[i])
		}
	}
	return result
}

// RenewedAt returns the time at which the hub received a heartbeat, by its clock, from the managed fields. It is zero if there are none.
func RenewedAt(beat *hubv1alpha1.Heartbeat) time.Time {
	var result time.Time
	for _, entry := range beat.ManagedFields {
		if entry.Time != nil && entry.Time.After(result) {
			result = entry.Time.Time
		}
	}
	return result
}

// Store returns a Store with the snapshot, for the member own, or for no member if own is empty. Members whose publication is Complete
// are confirmed.
func (s *Snapshot) Store(own clusterset.ClusterID, denied clusterset.AddressRanges) *Store {
	store := NewStore(own, denied)
	s.Fill(store)
	return store
}

// Fill replaces the content of a store by the snapshot. Members whose publication is Complete are confirmed.
func (s *Snapshot) Fill(store *Store) {
	replace(store, kindMember, s.members.Items, s.members.ResourceVersion)
	replace(store, kindHeartbeat, s.heartbeats.Items, s.heartbeats.ResourceVersion)
	replace(store, kindService, s.services.Items, s.services.ResourceVersion)
	replace(store, kindEndpoints, s.endpoints.Items, s.endpoints.ResourceVersion)
	replace(store, kindGateway, s.gateways.Items, s.gateways.ResourceVersion)
	store.mu.Lock()
	defer store.mu.Unlock()
	for id, beat := range store.heartbeats {
		if beat.Spec.Publication == hubv1alpha1.PublicationComplete {
			store.confirm(id)
		}
	}
}

// replace replaces the objects of a kind. The store gets copies, because it changes their metadata.
func replace[T any, P interface {
	*T
	client.Object
}](store *Store, k kind, items []T, version string) {
	store.mu.Lock()
	defer store.mu.Unlock()
	for i := range items {
		object := items[i]
		if id, ok := clusterset.ClusterIDOfHubNamespace(P(&object).GetNamespace()); ok {
			store.put(P(&object), id)
		}
	}
	if k == kindGateway {
		store.gateways.listed = true
		return
	}
	store.listed[k], store.seen[k] = true, version
	store.listing++
}

// Members returns the IDs of all members, in no order.
func (s *Store) Members() []clusterset.ClusterID {
	s.mu.RLock()
	defer s.mu.RUnlock()
	ids := make([]clusterset.ClusterID, 0, len(s.members))
	for id := range s.members {
		ids = append(ids, id)
	}
	return ids
}
