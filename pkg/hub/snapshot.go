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

// Snapshot is what the hub holds at one time, for whoever looks once and does not stay.
type Snapshot struct {
	members    hubv1alpha1.MemberList
	heartbeats hubv1alpha1.HeartbeatList
	services   hubv1alpha1.PublishedServiceList
	endpoints  hubv1alpha1.PublishedEndpointsList
}

// Read returns what the hub holds. It asks once for each kind.
func Read(ctx context.Context, c client.Reader) (*Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, listDeadline)
	defer cancel()
	s := &Snapshot{}
	for _, list := range []client.ObjectList{&s.members, &s.heartbeats, &s.services, &s.endpoints} {
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list %T of the hub: %w", list, err)
		}
	}
	return s, nil
}

// Renewed returns, for each cluster with a heartbeat, when the hub received the last one, by the hub's clock: the time
// that the API server has noted of the write. Zero where it has noted none.
func (s *Snapshot) Renewed() map[clusterset.ClusterID]time.Time {
	result := map[clusterset.ClusterID]time.Time{}
	for _, beat := range s.heartbeats.Items {
		id, ok := clusterset.ClusterIDOfHubNamespace(beat.Namespace)
		if !ok {
			continue
		}
		result[id] = time.Time{}
		for _, entry := range beat.ManagedFields {
			if entry.Time != nil && entry.Time.After(result[id]) {
				result[id] = entry.Time.Time
			}
		}
	}
	return result
}

// Store returns a Store that holds the snapshot as a member sees it, or as nobody does where own is empty. What is
// missing from it of a member that says Complete counts as deleted.
func (s *Snapshot) Store(own clusterset.ClusterID, denied clusterset.Fence) *Store {
	store := NewStore(own, denied)
	s.Fill(store)
	return store
}

// Fill makes the snapshot what a store holds, as lists of the hub that the members have confirmed.
func (s *Snapshot) Fill(store *Store) {
	take(store, kindMember, s.members.Items, s.members.ResourceVersion)
	take(store, kindHeartbeat, s.heartbeats.Items, s.heartbeats.ResourceVersion)
	take(store, kindService, s.services.Items, s.services.ResourceVersion)
	take(store, kindEndpoints, s.endpoints.Items, s.endpoints.ResourceVersion)
	store.mu.Lock()
	defer store.mu.Unlock()
	for id, beat := range store.heartbeats {
		if beat.Spec.Publication == hubv1alpha1.PublicationComplete {
			store.confirm(id)
		}
	}
}

// take makes the objects the only ones of their kind. The store gets objects of its own: it changes their metadata.
func take[T any, P interface {
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
