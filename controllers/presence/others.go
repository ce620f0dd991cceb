// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"maps"
	"sync"

	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// State returns the state of a member. The local member is always live.
func (p *Presence) State(id clusterset.ClusterID) liveness.State {
	if id == p.Cluster {
		return liveness.Live
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Tracker.State(id)
}

// RemoteStates returns the state of each remote member that has a heartbeat. It is empty on a replica that does not lead.
func (p *Presence) RemoteStates() map[clusterset.ClusterID]liveness.State {
	p.mu.Lock()
	states := p.Tracker.States()
	p.mu.Unlock() // before the store is read, which notifies presence while it is locked
	maps.DeleteFunc(states, func(id clusterset.ClusterID, _ liveness.State) bool {
		return id == p.Cluster || p.Store.Heartbeat(id) == nil
	})
	return states
}

// process updates the tracker with events, and requests the reconciliation of the services of members whose state changes.
func (p *Presence) process(events []hub.MemberEvent) {
	absent := p.Store.Absent() // without the lock: the store notifies presence while it is locked
	changed, expired := p.changed(events, absent)
	for _, id := range changed {
		p.Log.Info("a member's state has changed", "member", id, "state", p.State(id))
		p.Store.RefreshMember(id)
	}
	for _, id := range expired {
		p.Log.Info("the hub has had no Member for the cluster for the timeout; its exports are removed", "member", id, "timeout", p.AbsentTimeout)
		p.Store.MarkLeft(id)
	}
}

// changed returns the members whose state changes with these events, and those that were absent for the timeout.
func (p *Presence) changed(events []hub.MemberEvent, absent []clusterset.ClusterID) (changed, expired []clusterset.ClusterID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, event := range events {
		switch {
		case event.Type == hub.GatewayChanged:
		case event.Type == hub.MemberLeft:
			p.Tracker.Remove(event.Cluster)
		case event.Cluster == p.Cluster && event.Type == hub.HeartbeatRenewed:
			changed = append(changed, p.Tracker.LocalRenewed(p.Clock.Now(), p.Store.HeartbeatInterval(p.Cluster))...)
			expired = p.Tracker.Absent(absent, p.AbsentTimeout)
		case event.Cluster == p.Cluster:
		case event.Type == hub.MemberSeen:
			p.Tracker.Track(event.Cluster, p.Store.HeartbeatInterval(event.Cluster))
		case p.Tracker.Renewed(event.Cluster, p.Store.HeartbeatInterval(event.Cluster)):
			changed = append(changed, event.Cluster)
		}
	}
	return changed, expired
}

// eventBuffer stores events until they are taken, because a subscriber must not block the store.
type eventBuffer struct {
	filled chan struct{}

	mu     sync.Mutex
	events []hub.MemberEvent
}

func subscribe(store *hub.Store) *eventBuffer {
	b := &eventBuffer{filled: make(chan struct{}, 1)}
	store.SubscribeMembers(func(event hub.MemberEvent) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.events = append(b.events, event)
		select {
		case b.filled <- struct{}{}:
		default: // signalled already
		}
	})
	return b
}

// take returns the events since the last call.
func (b *eventBuffer) take() []hub.MemberEvent {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.events
	b.events = nil
	return taken
}
