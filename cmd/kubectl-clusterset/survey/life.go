// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
)

// life is what the hub has heard of a member's agent.
type life struct {
	silence time.Duration
	// interval is the time between its heartbeats.
	interval time.Duration
	// known is false where the hub has never heard of it.
	known bool
}

// defaultInterval is the time between heartbeats where none is announced.
const defaultInterval = 10 * time.Second

func (h *Hub) lifeOf(id clusterset.ClusterID) life {
	silence, known := h.Silence(id)
	return life{silence, cmp.Or(h.Records.HeartbeatInterval(id), defaultInterval), known}
}

// state returns whether the hub hears of the member.
func (l life) state() State {
	switch {
	case !l.known:
		return StateNeverHeard
	case l.silence > liveness.GracePeriods*l.interval:
		return StateSilent
	}
	return StateConnected
}

// Connected returns the members that are not silent by the hub's clock, with the interval of their heartbeats.
func (h *Hub) Connected() map[clusterset.ClusterID]time.Duration {
	result := map[clusterset.ClusterID]time.Duration{}
	for _, id := range h.Records.Members() {
		if life := h.lifeOf(id); life.state() == StateConnected {
			result[id] = life.interval
		}
	}
	return result
}

// String says when it was last heard of.
func (l life) String() string {
	if !l.known {
		return "its agent has sent no heartbeat yet"
	}
	return fmt.Sprintf("the last heartbeat of its agent was %s ago", l.silence.Round(time.Second))
}
