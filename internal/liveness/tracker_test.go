// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package liveness_test

import (
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const (
	interval = 10 * time.Second
	grace    = 4 * interval
)

// hub simulates a hub on which all members renew their heartbeats every interval.
type hub struct {
	*liveness.Tracker
	now      time.Time
	renewing map[clusterset.ClusterID]bool
}

func newHub(others ...clusterset.ClusterID) *hub {
	h := &hub{
		Tracker:  liveness.NewTracker(interval, grace),
		now:      time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		renewing: map[clusterset.ClusterID]bool{},
	}
	for _, id := range others {
		h.Track(id, 0)
		h.renewing[id] = true
	}
	h.LocalRenewed(h.now, 0)
	return h
}

// pass advances the time with a working hub and returns the members whose state changed.
func (h *hub) pass(d time.Duration) []clusterset.ClusterID {
	var changed []clusterset.ClusterID
	for end := h.now.Add(d); h.now.Before(end); {
		h.now = h.now.Add(interval)
		changed = append(changed, h.LocalRenewed(h.now, 0)...)
		for id, renewing := range h.renewing {
			if renewing && h.Renewed(id, 0) {
				changed = append(changed, id)
			}
		}
	}
	return changed
}

func (h *hub) want(t *testing.T, id clusterset.ClusterID, want liveness.State) {
	t.Helper()
	if got := h.State(id); got != want {
		t.Fatalf("%s is %s, want %s", id, got, want)
	}
}

// spec: D9
func TestSilentMember(t *testing.T) {
	h := newHub("a", "b")
	h.want(t, "a", liveness.Unknown)
	h.pass(interval)
	h.want(t, "a", liveness.Live)

	h.renewing["a"] = false
	if changed := h.pass(grace); changed != nil {
		t.Errorf("%v changed within the grace period", changed)
	}
	check.Equal(t, "changed after the grace period", []clusterset.ClusterID{"a"}, h.pass(interval))
	h.want(t, "a", liveness.Silent)
	h.want(t, "b", liveness.Live)
	check.Equal(t, "silent", []clusterset.ClusterID{"a"}, h.Silent())

	h.renewing["a"] = true
	h.pass(interval)
	h.want(t, "a", liveness.Silent) // one renewal is not enough
	h.pass(interval)
	h.want(t, "a", liveness.Live)
}

// spec: D9
func TestNeverConnected(t *testing.T) {
	h := newHub("a")
	h.renewing["a"] = false
	h.pass(grace)
	h.want(t, "a", liveness.Unknown)
	h.pass(interval)
	h.want(t, "a", liveness.Silent)
	h.want(t, "stranger", liveness.Unknown)
}

// TestNoMemberSilentWithoutHub: no member becomes silent while the local heartbeat is not read back.
//
// spec: D9
func TestNoMemberSilentWithoutHub(t *testing.T) {
	h := newHub("a")
	h.pass(interval)
	h.renewing["a"] = false
	for range 10 { // unreachable for an hour, reachable for one heartbeat, repeatedly
		h.now = h.now.Add(time.Hour)
		if changed := h.LocalRenewed(h.now, 0); changed != nil {
			t.Fatalf("%v changed though the hub was unreachable", changed)
		}
	}
	h.want(t, "a", liveness.Live)
	h.pass(grace + interval)
	h.want(t, "a", liveness.Silent)
}

// TestClockSteps: no member becomes silent because the local clock is set back or stops.
func TestClockSteps(t *testing.T) {
	h := newHub("a")
	h.pass(interval)
	for range 100 {
		h.LocalRenewed(h.now, 0)
		h.now = h.now.Add(-time.Second)
	}
	h.want(t, "a", liveness.Live)
}

// TestFlapping: a member that is silent repeatedly needs more renewals each time, until it has been live long enough.
//
// spec: D9
func TestFlapping(t *testing.T) {
	h := newHub("a")
	h.pass(interval)
	returns := 0
	for elapsed := time.Duration(0); elapsed < 10*time.Minute; elapsed += 90 * time.Second {
		h.renewing["a"] = false
		h.pass(time.Minute)
		h.renewing["a"] = true
		for _, id := range h.pass(30 * time.Second) {
			if h.State(id) == liveness.Live {
				returns++
			}
		}
	}
	if returns != 1 { // after the second silence four renewals are required; there are three in 30 s
		t.Errorf("it came back %d times, want once", returns)
	}
	h.pass(interval)
	h.want(t, "a", liveness.Live) // the fourth renewal
	h.pass(time.Hour)
	h.renewing["a"] = false
	h.pass(grace + interval)
	h.want(t, "a", liveness.Silent)
	h.renewing["a"] = true
	h.pass(2 * interval)
	h.want(t, "a", liveness.Live) // the number of renewals is reset
}

// TestEachReturnTakesLonger: if a member becomes silent within five minutes after it became live, the required renewals are doubled,
// up to 32. One fewer is not enough. After a longer time they are reset.
//
// spec: D9
func TestEachReturnTakesLonger(t *testing.T) {
	h := newHub("a")
	h.pass(interval)
	returns := func(renewals int) {
		t.Helper()
		h.renewing["a"] = false
		h.pass(grace + interval)
		h.want(t, "a", liveness.Silent)
		h.renewing["a"] = true
		h.pass(time.Duration(renewals-1) * interval)
		h.want(t, "a", liveness.Silent)
		h.pass(interval)
		h.want(t, "a", liveness.Live)
	}
	for _, renewals := range []int{2, 4, 8, 16, 32, 32} {
		returns(renewals)
		h.pass(5*time.Minute - interval)
	}
	h.pass(2 * interval) // one heartbeat more than five minutes in total
	for _, renewals := range []int{2, 4} {
		returns(renewals)
	}
}

// TestHoldIsBounded: after any number of silences, a member becomes live within half an hour of renewals.
func TestHoldIsBounded(t *testing.T) {
	h := newHub("a")
	h.pass(interval)
	for range 20 {
		h.renewing["a"] = false
		h.pass(grace + interval)
		h.want(t, "a", liveness.Silent)
		h.renewing["a"] = true
		h.pass(32 * interval)
		h.want(t, "a", liveness.Live)
	}
}

func TestLeft(t *testing.T) {
	h := newHub("a")
	h.pass(interval)
	h.Remove("a")
	delete(h.renewing, "a")
	h.want(t, "a", liveness.Unknown)
	if changed := h.pass(time.Hour); changed != nil {
		t.Errorf("%v changed though it had left", changed)
	}
}

// TestGaps: time counts while the local heartbeat is read back at most two and a half intervals apart, and only forwards.
func TestGaps(t *testing.T) {
	for name, test := range map[string]struct {
		gaps []time.Duration
		want liveness.State
	}{
		"the grace period to the second":     {[]time.Duration{2 * interval, 2 * interval}, liveness.Live},
		"and one second more":                {[]time.Duration{2 * interval, 2 * interval, time.Second}, liveness.Silent},
		"the longest gap that counts":        {[]time.Duration{25 * time.Second, 16 * time.Second}, liveness.Silent},
		"one that is longer does not":        {[]time.Duration{25*time.Second + 1, 25*time.Second + 1, 16 * time.Second}, liveness.Live},
		"a clock that is set back takes off": {[]time.Duration{40 * time.Second, -time.Second}, liveness.Live},
		"nothing of what has passed": {
			[]time.Duration{2 * interval, -interval, 2 * interval, time.Second}, liveness.Silent,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub("a")
			h.Renewed("a", 0)
			for _, gap := range test.gaps {
				h.now = h.now.Add(gap)
				h.LocalRenewed(h.now, 0)
			}
			h.want(t, "a", test.want)
		})
	}
}

// TestMembersAreIndependent: the state of one member does not affect another.
func TestMembersAreIndependent(t *testing.T) {
	h := newHub("a", "b", "c", "d")
	h.pass(interval)
	h.renewing["b"], h.renewing["d"] = false, false
	check.Equal(t, "changed", []clusterset.ClusterID{"b", "d"}, h.pass(grace+interval))
	h.renewing["d"] = true
	h.pass(2 * interval)
	h.renewing["a"], h.renewing["d"] = false, false
	check.Equal(t, "changed while b is silent", []clusterset.ClusterID{"a", "d"}, h.pass(grace+interval))
	h.Track("e", 0)
	want := map[clusterset.ClusterID]liveness.State{
		"a": liveness.Silent, "b": liveness.Silent, "c": liveness.Live, "d": liveness.Silent, "e": liveness.Unknown,
	}
	check.Equal(t, "all states", want, h.States())
}

// TestSlowMember: a member with a longer heartbeat interval than the local one is silent only after several of its own intervals,
// whether it was renewed or not. For a shorter interval, the local grace period applies.
//
// spec: D9
func TestSlowMember(t *testing.T) {
	const slow = 6 * interval
	h := newHub()
	h.Track("slow", slow)
	h.Track("fast", time.Second)
	h.Renewed("renewed", slow)
	check.Equal(t, "changed after the usual grace period", []clusterset.ClusterID{"fast"}, h.pass(grace+interval))
	h.pass(4*slow - grace - interval)
	h.want(t, "slow", liveness.Unknown)
	h.want(t, "renewed", liveness.Live)
	check.Equal(t, "changed after the members' own", []clusterset.ClusterID{"renewed", "slow"}, h.pass(interval))
	h.Renewed("renewed", 0) // it reports no interval any more
	h.Renewed("renewed", 0)
	h.want(t, "renewed", liveness.Live)
	check.Equal(t, "changed after a heartbeat without an interval", []clusterset.ClusterID{"renewed"}, h.pass(grace+interval))
}

// TestFlapWindow: the required renewals are reset after a member was live for five minutes.
//
// spec: D9
func TestFlapWindow(t *testing.T) {
	for name, test := range map[string]struct {
		stay time.Duration
		want liveness.State
	}{
		"five minutes":          {5 * time.Minute, liveness.Silent},
		"and a heartbeat more":  {5*time.Minute + interval, liveness.Live},
		"not that long":         {time.Minute, liveness.Silent},
		"as long as never gone": {time.Hour, liveness.Live},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub("a")
			h.pass(interval)
			silence := func() {
				h.renewing["a"] = false
				h.pass(grace + interval)
				h.want(t, "a", liveness.Silent)
				h.renewing["a"] = true
			}
			silence()
			h.pass(2 * interval)
			h.want(t, "a", liveness.Live)
			h.pass(test.stay)
			silence()
			h.pass(2 * interval) // enough if the number of renewals was reset
			h.want(t, "a", test.want)
		})
	}
}

// TestAbsent: an absence lasts only while the local heartbeat is read back, and starts again if the Member existed meanwhile. An
// absent member becomes silent like others.
func TestAbsent(t *testing.T) {
	const timeout = 6 * interval
	h := newHub()
	absent := func(ids ...clusterset.ClusterID) []clusterset.ClusterID { return h.Absent(ids, timeout) }
	want := func(step string, got []clusterset.ClusterID, want ...clusterset.ClusterID) {
		t.Helper()
		check.Equal(t, step, want, got)
	}
	want("at first", absent("a", "b"))
	h.pass(timeout - interval)
	want("early", absent("a", "b"))
	h.want(t, "a", liveness.Silent)
	want("b has a Member", absent("a"))
	h.now = h.now.Add(time.Hour) // the hub is unreachable
	h.LocalRenewed(h.now, 0)
	want("after an hour without the hub", absent("a", "b"))
	h.pass(interval)
	want("the timeout of a", absent("b", "a"), "a")
	h.pass(timeout - interval)
	want("that of both", absent("b", "a"), "a", "b")
}
