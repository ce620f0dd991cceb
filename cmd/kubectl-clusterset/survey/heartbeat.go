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

// lastHeartbeat describes the last heartbeat of a member, by the hub's clock.
type lastHeartbeat struct {
	age time.Duration
	// interval is the time between its heartbeats.
	interval time.Duration
	// received is false if the hub has never received one.
	received bool
}

// defaultInterval is the heartbeat interval if the Heartbeat names none.
const defaultInterval = 10 * time.Second

func (h *Hub) lastHeartbeat(id clusterset.ClusterID) lastHeartbeat {
	age, received := h.Silence(id)
	return lastHeartbeat{age, cmp.Or(h.Records.HeartbeatInterval(id), defaultInterval), received}
}

// state returns the State of the member.
func (l lastHeartbeat) state() State {
	switch {
	case !l.received:
		return StateNeverHeard
	case l.age > liveness.GracePeriods*l.interval:
		return StateSilent
	}
	return StateConnected
}

// Connected returns the members that are not silent by the hub's clock, with their heartbeat intervals.
func (h *Hub) Connected() map[clusterset.ClusterID]time.Duration {
	result := map[clusterset.ClusterID]time.Duration{}
	for _, id := range h.Records.Members() {
		if last := h.lastHeartbeat(id); last.state() == StateConnected {
			result[id] = last.interval
		}
	}
	return result
}

// String describes the age of the heartbeat.
func (l lastHeartbeat) String() string {
	if !l.received {
		return "its agent has sent no heartbeat yet"
	}
	return fmt.Sprintf("the last heartbeat of its agent was %s ago", l.age.Round(time.Second))
}
