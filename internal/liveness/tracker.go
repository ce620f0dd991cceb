// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package liveness decides which members are live, and which endpoints an import uses while some members are not live
// (decision 4). It is pure: the caller passes the time.
package liveness

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// State is the state of a member.
type State string

// The states of a member.
const (
	// Unknown: its heartbeat was not renewed since the agent started. Its mirrored slices stay as they are.
	Unknown State = "Unknown"
	// Live: its heartbeat is renewed.
	Live State = "Live"
	// Silent: its heartbeat was not renewed for the grace period, or not often enough since then.
	Silent State = "Silent"
)

// GracePeriods is the number of missed heartbeats after which a member is silent.
const GracePeriods = 4

const (
	// minRenewals is how often a silent member must renew its heartbeat to become live.
	minRenewals = 2
	// maxRenewals limits that number for a member that becomes silent repeatedly.
	maxRenewals = 32
	// flapWindow is the time since a member became live within which another silence doubles the number.
	flapWindow = 5 * time.Minute
)

// Tracker tracks the state of the members by their heartbeats.
//
// Time counts only while the local heartbeat is read back from the hub, so no member becomes silent because the hub or the local agent
// is frozen or unreachable. Clocks of different members are not compared.
type Tracker struct {
	// interval is the configured time between local heartbeats, and current what the last one named, if that is longer.
	interval, current, grace time.Duration

	// connected is the total time during which the local heartbeat was read back without a gap.
	connected time.Duration
	// last is when the local heartbeat was last read back; zero if never.
	last    time.Time
	members map[clusterset.ClusterID]*member
	// absent are the times at which members became absent, as values of connected.
	absent map[clusterset.ClusterID]time.Duration
}

// member is the state of one member. Times are values of Tracker.connected.
type member struct {
	state State
	seen  time.Duration
	grace time.Duration
	// renewals counts the heartbeats of a silent member; it becomes live when they reach required.
	renewals, required int
	returned           time.Duration
	hasReturned        bool
}

// NewTracker returns a Tracker for local heartbeats at every interval, or at longer ones. A member is silent after grace without a
// heartbeat, or after GracePeriods of its own interval or of the current local one if that is longer.
func NewTracker(interval, grace time.Duration) *Tracker {
	return &Tracker{interval: interval, grace: grace, members: map[clusterset.ClusterID]*member{}, absent: map[clusterset.ClusterID]time.Duration{}}
}

// LocalRenewed records that the local heartbeat was read back at now, and returns the sorted IDs of the members whose state changes.
// interval is the interval that it names, 0 if it is not known.
func (t *Tracker) LocalRenewed(now time.Time, interval time.Duration) []clusterset.ClusterID {
	due := max(t.interval, t.current) // the last heartbeat has named it
	t.current = max(t.interval, interval)
	// One late heartbeat is no gap; more than one missing heartbeat is, and so is the time before the first.
	if gap := now.Sub(t.last); gap <= 2*due+due/2 {
		t.connected += max(gap, 0) // the clock may be set back
	}
	t.last = now
	var changed []clusterset.ClusterID
	for _, id := range slices.Sorted(maps.Keys(t.members)) {
		m := t.members[id]
		if t.connected-m.seen <= max(m.grace, GracePeriods*t.current) { // connected grows once in a local interval
			continue
		}
		m.renewals = 0
		if m.state == Silent {
			continue
		}
		if m.hasReturned && m.seen-m.returned <= flapWindow {
			m.required = min(2*m.required, maxRenewals)
		} else {
			m.required = minRenewals
		}
		m.state = Silent
		changed = append(changed, id)
	}
	return changed
}

// Track adds a member or updates its heartbeat interval, which is 0 if it is not known.
func (t *Tracker) Track(id clusterset.ClusterID, interval time.Duration) {
	if t.members[id] == nil {
		t.members[id] = &member{state: Unknown, seen: t.connected, required: minRenewals}
	}
	t.members[id].grace = max(t.grace, GracePeriods*interval)
}

// Renewed records that a member's heartbeat was renewed, and reports whether that changes its state. interval is its heartbeat
// interval.
func (t *Tracker) Renewed(id clusterset.ClusterID, interval time.Duration) bool {
	t.Track(id, interval)
	m := t.members[id]
	m.seen = t.connected
	switch m.state {
	case Live:
		return false
	case Silent:
		m.renewals++
		if m.renewals < m.required {
			return false
		}
		m.returned, m.hasReturned = t.connected, true
	case Unknown:
	}
	m.state, m.renewals = Live, 0
	return true
}

// Absent records which members are absent at present, and returns the sorted IDs of those that were absent for the timeout. The
// timeout counts only while the local heartbeat is read back.
func (t *Tracker) Absent(ids []clusterset.ClusterID, timeout time.Duration) []clusterset.ClusterID {
	since := make(map[clusterset.ClusterID]time.Duration, len(ids))
	var expired []clusterset.ClusterID
	for _, id := range ids {
		t.Track(id, 0) // so that it becomes silent
		began, was := t.absent[id]
		if !was {
			began = t.connected
		}
		since[id] = began
		if t.connected-began >= timeout {
			expired = append(expired, id)
		}
	}
	t.absent = since
	slices.Sort(expired)
	return expired
}

// Remove removes a member.
func (t *Tracker) Remove(id clusterset.ClusterID) { delete(t.members, id) }

// State returns the state of a member; Unknown if the tracker has none.
func (t *Tracker) State(id clusterset.ClusterID) State {
	if m := t.members[id]; m != nil {
		return m.state
	}
	return Unknown
}

// States returns the state of each member.
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
