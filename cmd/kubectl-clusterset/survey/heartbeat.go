// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// State states whether the hub receives heartbeats of a member.
type State string

// Values of State.
const (
	StateConnected      State = "Connected"
	StateSilent         State = "Silent"
	StateNeverConnected State = "NeverConnected"
	// StateUnknown: the hub could not be read.
	StateUnknown State = "Unknown"
)

// LastHeartbeat describes the last heartbeat of a member, by the hub's clock.
type LastHeartbeat struct {
	Age time.Duration
	// Interval is the time between its heartbeats.
	Interval time.Duration
	// received is false if the hub has never received one.
	received bool
	// unknown is true if the hub could not be read.
	unknown bool
}

// DefaultInterval is the heartbeat interval if the Heartbeat names none.
const DefaultInterval = 10 * time.Second

// LastHeartbeat returns what is known of the last heartbeat of a member.
func (h *Hub) LastHeartbeat(id clusterset.ClusterID) LastHeartbeat {
	age, received := h.Silence(id)
	return LastHeartbeat{age, cmp.Or(h.Records.HeartbeatInterval(id), DefaultInterval), received, !h.IsRead()}
}

// State returns the State of the member.
func (l LastHeartbeat) State() State {
	switch {
	case l.unknown:
		return StateUnknown
	case !l.received:
		return StateNeverConnected
	case l.Age > liveness.GracePeriods*l.Interval:
		return StateSilent
	}
	return StateConnected
}

// Connected returns the members that are not silent by the hub's clock, with their heartbeat intervals.
func (h *Hub) Connected() map[clusterset.ClusterID]time.Duration {
	result := map[clusterset.ClusterID]time.Duration{}
	for _, id := range h.Records.Members() {
		if last := h.LastHeartbeat(id); last.State() == StateConnected {
			result[id] = last.Interval
		}
	}
	return result
}

// String describes the age of the heartbeat.
func (l LastHeartbeat) String() string {
	switch {
	case l.unknown:
		return "its last heartbeat is not known, because the hub could not be read"
	case !l.received:
		return "its agent has sent no heartbeat yet"
	}
	return fmt.Sprintf("the last heartbeat of its agent was %s ago", l.Age.Round(time.Second))
}
