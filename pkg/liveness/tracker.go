// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package liveness judges which members are alive, and whose endpoints an import uses while some are not (design
// decision 9). It is pure: whoever calls it brings the time.
package liveness

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// State is what is known of a member's life.
type State string

// The states of a member.
const (
	// Unknown: not heard of since we started. What there is of its slices stays as it is.
	Unknown State = "Unknown"
	// Live: it renews its heartbeat.
	Live State = "Live"
	// Silent: it has not for the grace period, or not yet often enough since.
	Silent State = "Silent"
)

// GracePeriods is how many heartbeat intervals a member may be silent before it counts as such.
const GracePeriods = 4

const (
	// firstHold is how often a member must have renewed its heartbeat after a silence to count as alive again.
	firstHold = 2
	// mostHold bounds the number to which that grows when a member comes and goes.
	mostHold = 32
	// flapWindow is the time since a member's last return within which another silence doubles the number.
	flapWindow = 5 * time.Minute
)

// Tracker judges the members by their heartbeats.
//
// Others age only while our own heartbeat comes back to us: a hub that is frozen or out of reach, or an agent that was,
// ages nobody. No two clocks are compared, and no other member's clock counts.
type Tracker struct {
	interval, grace time.Duration

	// link is how long our own heartbeats have been coming back without a gap, all such times added up.
	link time.Duration
	// own is when our own heartbeat last came back; zero, ages ago, if never.
	own     time.Time
	members map[clusterset.ClusterID]*life
	// absent says since when members have had no Member on the hub, as readings of link.
	absent map[clusterset.ClusterID]time.Duration
}

// life is what is known of one member. Times are readings of Tracker.link.
type life struct {
	state State
	seen  time.Duration
	grace time.Duration
	// renewals are those since the last silence, while it lasts.
	renewals, hold int
	returned       time.Duration
	hasReturned    bool
}

// NewTracker returns a Tracker for own heartbeats that come every interval. A member is silent after grace without one, or after
// GracePeriods of the interval that it announces, where that is longer.
func NewTracker(interval, grace time.Duration) *Tracker {
	return &Tracker{interval: interval, grace: grace, members: map[clusterset.ClusterID]*life{}, absent: map[clusterset.ClusterID]time.Duration{}}
}

// Own notes that our own heartbeat came back at now, and returns the members whose state that changes, sorted.
func (t *Tracker) Own(now time.Time) []clusterset.ClusterID {
	// A heartbeat may be late; more than one that is missing is a gap. So is the time before the first.
	if gap := now.Sub(t.own); gap > 0 && gap <= 2*t.interval+t.interval/2 {
		t.link += gap
	}
	t.own = now
	var changed []clusterset.ClusterID
	for _, id := range slices.Sorted(maps.Keys(t.members)) {
		m := t.members[id]
		if t.link-m.seen <= m.grace {
			continue
		}
		m.renewals = 0
		if m.state == Silent {
			continue
		}
		if m.hasReturned && m.seen-m.returned <= flapWindow {
			m.hold = min(2*m.hold, mostHold)
		} else {
			m.hold = firstHold
		}
		m.state = Silent
		changed = append(changed, id)
	}
	return changed
}

// Known notes that there is a member, without having heard of it. every is the time between heartbeats that it announces; 0 for none.
func (t *Tracker) Known(id clusterset.ClusterID, every time.Duration) {
	if t.members[id] == nil {
		t.members[id] = &life{state: Unknown, seen: t.link, hold: firstHold}
	}
	t.members[id].grace = max(t.grace, GracePeriods*every)
}

// Renewed notes that a member's heartbeat was renewed, which announces the next one, and reports whether that changes its state.
func (t *Tracker) Renewed(id clusterset.ClusterID, every time.Duration) bool {
	t.Known(id, every)
	m := t.members[id]
	m.seen = t.link
	switch m.state {
	case Live:
		return false
	case Silent:
		m.renewals++
		if m.renewals < m.hold {
			return false
		}
		m.returned, m.hasReturned = t.link, true
	case Unknown:
	}
	m.state, m.renewals = Live, 0
	return true
}

// Absent notes which clusters have no Member on the hub at present, though nobody was seen to delete it, and returns those
// that have had none for the timeout, sorted. Like a silence, an absence lasts only while our own heartbeat comes back.
func (t *Tracker) Absent(ids []clusterset.ClusterID, timeout time.Duration) []clusterset.ClusterID {
	since := make(map[clusterset.ClusterID]time.Duration, len(ids))
	var expired []clusterset.ClusterID
	for _, id := range ids {
		t.Known(id, 0) // so that it becomes silent
		began, was := t.absent[id]
		if !was {
			began = t.link
		}
		since[id] = began
		if t.link-began >= timeout {
			expired = append(expired, id)
		}
	}
	t.absent = since
	slices.Sort(expired)
	return expired
}

// Left forgets a member that is none any more.
func (t *Tracker) Left(id clusterset.ClusterID) { delete(t.members, id) }

// State returns what is known of a member.
func (t *Tracker) State(id clusterset.ClusterID) State {
	if m := t.members[id]; m != nil {
		return m.state
	}
	return Unknown
}

// States returns what is known of each member that we know of.
func (t *Tracker) States() map[clusterset.ClusterID]State {
	states := make(map[clusterset.ClusterID]State, len(t.members))
	for id, m := range t.members {
		states[id] = m.state
	}
	return states
}

// Silent returns the silent members, sorted.
func (t *Tracker) Silent() []clusterset.ClusterID {
	var silent []clusterset.ClusterID
	for id, m := range t.members {
		if m.state == Silent {
			silent = append(silent, id)
		}
	}
	slices.SortFunc(silent, cmp.Compare)
	return silent
}
