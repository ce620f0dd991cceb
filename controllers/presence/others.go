// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"maps"
	"sync"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
)

// State returns what is known of a member's life. This cluster itself is alive.
func (p *Presence) State(id clusterset.ClusterID) liveness.State {
	if id == p.Cluster {
		return liveness.Live
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Tracker.State(id)
}

// Others returns what is known of the life of each other member that has sent a heartbeat: one that has not, has yet to
// join. On a standby, which listens to nobody, it returns none.
func (p *Presence) Others() map[clusterset.ClusterID]liveness.State {
	p.mu.Lock()
	states := p.Tracker.States()
	p.mu.Unlock() // the store is asked without it: it tells us signs while it is locked
	maps.DeleteFunc(states, func(id clusterset.ClusterID, _ liveness.State) bool {
		return id == p.Cluster || p.Store.Heartbeat(id) == nil
	})
	return states
}

// judge takes signs of life in, in their order, and has the services of members looked at whose state changes.
func (p *Presence) judge(signs []hub.Sign) {
	absent := p.Store.Absent() // without the lock: the store tells us signs while it is locked
	changed, expired := p.changed(signs, absent)
	for _, id := range changed {
		p.Log.Info("a member's state has changed", "member", id, "state", p.State(id))
		p.Store.RefreshMember(id)
	}
	for _, id := range expired {
		p.Log.Info("a cluster has had no Member on the hub for too long; what it exported is removed", "member", id, "timeout", p.AbsentTimeout)
		p.Store.Expel(id)
	}
}

// changed returns the members whose state changes with these signs, and those that have been absent for too long.
func (p *Presence) changed(signs []hub.Sign, absent []clusterset.ClusterID) (changed, expired []clusterset.ClusterID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sign := range signs {
		switch {
		case sign.Says == hub.Left:
			p.Tracker.Left(sign.Cluster)
		case sign.Cluster == p.Cluster && sign.Says == hub.Renewed:
			changed = append(changed, p.Tracker.Own(p.Clock.Now())...)
			expired = p.Tracker.Absent(absent, p.AbsentTimeout)
		case sign.Cluster == p.Cluster:
		case sign.Says == hub.Exists:
			p.Tracker.Known(sign.Cluster, p.Store.HeartbeatInterval(sign.Cluster))
		case p.Tracker.Renewed(sign.Cluster, p.Store.HeartbeatInterval(sign.Cluster)):
			changed = append(changed, sign.Cluster)
		}
	}
	return changed, expired
}

// signs collects signs of life between the store, which must not be kept waiting, and whoever takes them.
type signs struct {
	news chan struct{}

	mu   sync.Mutex
	list []hub.Sign
}

func listen(store *hub.Store) *signs {
	s := &signs{news: make(chan struct{}, 1)}
	store.Listen(func(sign hub.Sign) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.list = append(s.list, sign)
		select {
		case s.news <- struct{}{}:
		default: // announced already
		}
	})
	return s
}

// take returns the signs that have come since it was last called.
func (s *signs) take() []hub.Sign {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.list
	s.list = nil
	return taken
}
