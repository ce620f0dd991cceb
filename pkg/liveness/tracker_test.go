// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package liveness_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
)

const (
	interval = 10 * time.Second
	grace    = 4 * interval
)

// hub is a hub on which we and other members renew our heartbeats every interval, in time of its own.
type hub struct {
	*liveness.Tracker
	now   time.Time
	alive map[clusterset.ClusterID]bool
}

func newHub(others ...clusterset.ClusterID) *hub {
	h := &hub{
		Tracker: liveness.NewTracker(interval, grace),
		now:     time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		alive:   map[clusterset.ClusterID]bool{},
	}
	for _, id := range others {
		h.Known(id, 0)
		h.alive[id] = true
	}
	h.LocalRenewed(h.now)
	return h
}

// pass lets time pass with a working hub and returns the members whose state changed in it.
func (h *hub) pass(d time.Duration) []clusterset.ClusterID {
	var changed []clusterset.ClusterID
	for end := h.now.Add(d); h.now.Before(end); {
		h.now = h.now.Add(interval)
		changed = append(changed, h.LocalRenewed(h.now)...)
		for id, alive := range h.alive {
			if alive && h.Renewed(id, 0) {
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

	h.alive["a"] = false
	if changed := h.pass(grace); changed != nil {
		t.Errorf("%v changed within the grace period", changed)
	}
	if diff := cmp.Diff([]clusterset.ClusterID{"a"}, h.pass(interval)); diff != "" {
		t.Errorf("changed after the grace period (-want +got):\n%s", diff)
	}
	h.want(t, "a", liveness.Silent)
	h.want(t, "b", liveness.Live)
	if diff := cmp.Diff([]clusterset.ClusterID{"a"}, h.Silent()); diff != "" {
		t.Errorf("silent (-want +got):\n%s", diff)
	}

	h.alive["a"] = true
	h.pass(interval)
	h.want(t, "a", liveness.Silent) // one renewal may be the last
	h.pass(interval)
	h.want(t, "a", liveness.Live)
}

// spec: D9
func TestNeverHeardOf(t *testing.T) {
	h := newHub("a")
	h.alive["a"] = false
	h.pass(grace)
	h.want(t, "a", liveness.Unknown)
	h.pass(interval)
	h.want(t, "a", liveness.Silent)
	h.want(t, "stranger", liveness.Unknown)
}

// TestNobodyAgesWithoutTheHub: while our own heartbeat does not come back, the silence of others means nothing.
//
// spec: D9
func TestNobodyAgesWithoutTheHub(t *testing.T) {
	h := newHub("a")
	h.pass(interval)
	h.alive["a"] = false
	for range 10 { // away for an hour, back for one heartbeat, and again
		h.now = h.now.Add(time.Hour)
		if changed := h.LocalRenewed(h.now); changed != nil {
			t.Fatalf("%v changed though the hub was away", changed)
		}
	}
	h.want(t, "a", liveness.Live)
	h.pass(grace + interval)
	h.want(t, "a", liveness.Silent)
}

// TestClockSteps: a clock that is set back or stands still ages nobody.
func TestClockSteps(t *testing.T) {
	h := newHub("a")
	h.pass(interval)
	for range 100 {
		h.LocalRenewed(h.now)
		h.now = h.now.Add(-time.Second)
	}
	h.want(t, "a", liveness.Live)
}

// TestFlapping: a member that comes and goes has to stay longer each time before it counts, until it has stayed.
//
// spec: D9
func TestFlapping(t *testing.T) {
	h := newHub("a")
	h.pass(interval)
	returns := 0
	for elapsed := time.Duration(0); elapsed < 10*time.Minute; elapsed += 90 * time.Second {
		h.alive["a"] = false
		h.pass(time.Minute)
		h.alive["a"] = true
		for _, id := range h.pass(30 * time.Second) {
			if h.State(id) == liveness.Live {
				returns++
			}
		}
	}
	if returns != 1 { // after the second silence four renewals are wanted, and 30 s have room for three
		t.Errorf("it came back %d times, want once", returns)
	}
	h.pass(interval)
	h.want(t, "a", liveness.Live) // the fourth in a row
	h.pass(time.Hour)
	h.alive["a"] = false
	h.pass(grace + interval)
	h.want(t, "a", liveness.Silent)
	h.alive["a"] = true
	h.pass(2 * interval)
	h.want(t, "a", liveness.Live) // all forgiven
}

// TestEachReturnTakesLonger: each silence within five minutes of the last return doubles the renewals that the next return takes, up to
// 32; one fewer is not enough. Whoever has stayed for longer begins anew.
//
// spec: D9
func TestEachReturnTakesLonger(t *testing.T) {
	h := newHub("a")
	h.pass(interval)
	returns := func(renewals int) {
		t.Helper()
		h.alive["a"] = false
		h.pass(grace + interval)
		h.want(t, "a", liveness.Silent)
		h.alive["a"] = true
		h.pass(time.Duration(renewals-1) * interval)
		h.want(t, "a", liveness.Silent)
		h.pass(interval)
		h.want(t, "a", liveness.Live)
	}
	for _, renewals := range []int{2, 4, 8, 16, 32, 32} {
		returns(renewals)
		h.pass(5*time.Minute - interval)
	}
	h.pass(2 * interval) // together a heartbeat more than five minutes
	for _, renewals := range []int{2, 4} {
		returns(renewals)
	}
}

// TestHoldIsBounded: however often a member flaps, half an hour of life is enough.
func TestHoldIsBounded(t *testing.T) {
	h := newHub("a")
	h.pass(interval)
	for range 20 {
		h.alive["a"] = false
		h.pass(grace + interval)
		h.want(t, "a", liveness.Silent)
		h.alive["a"] = true
		h.pass(32 * interval)
		h.want(t, "a", liveness.Live)
	}
}

func TestLeft(t *testing.T) {
	h := newHub("a")
	h.pass(interval)
	h.Left("a")
	delete(h.alive, "a")
	h.want(t, "a", liveness.Unknown)
	if changed := h.pass(time.Hour); changed != nil {
		t.Errorf("%v changed though it had left", changed)
	}
}

// TestGaps: time counts while our own heartbeats come back two and a half intervals apart at most, and only forwards.
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
				h.LocalRenewed(h.now)
			}
			h.want(t, "a", test.want)
		})
	}
}

// TestEachByItself: one member's silence, or its return, is not another's.
func TestEachByItself(t *testing.T) {
	h := newHub("a", "b", "c", "d")
	h.pass(interval)
	h.alive["b"], h.alive["d"] = false, false
	if diff := cmp.Diff([]clusterset.ClusterID{"b", "d"}, h.pass(grace+interval)); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	h.alive["d"] = true
	h.pass(2 * interval)
	h.alive["a"], h.alive["d"] = false, false
	if diff := cmp.Diff([]clusterset.ClusterID{"a", "d"}, h.pass(grace+interval)); diff != "" {
		t.Errorf("changed while b is silent (-want +got):\n%s", diff)
	}
	h.Known("e", 0)
	want := map[clusterset.ClusterID]liveness.State{
		"a": liveness.Silent, "b": liveness.Silent, "c": liveness.Live, "d": liveness.Silent, "e": liveness.Unknown,
	}
	if diff := cmp.Diff(want, h.States()); diff != "" {
		t.Errorf("all states (-want +got):\n%s", diff)
	}
}

// TestSlowMember: a member that announces heartbeats at a longer interval than ours is given several of its own, heard of or not; one
// with a shorter interval is given as much time as all others.
//
// spec: D9
func TestSlowMember(t *testing.T) {
	const slow = 6 * interval
	h := newHub()
	h.Known("slow", slow)
	h.Known("fast", time.Second)
	h.Renewed("heard", slow)
	if diff := cmp.Diff([]clusterset.ClusterID{"fast"}, h.pass(grace+interval)); diff != "" {
		t.Errorf("changed after the usual grace period (-want +got):\n%s", diff)
	}
	h.pass(4*slow - grace - interval)
	h.want(t, "slow", liveness.Unknown)
	h.want(t, "heard", liveness.Live)
	if diff := cmp.Diff([]clusterset.ClusterID{"heard", "slow"}, h.pass(interval)); diff != "" {
		t.Errorf("changed after the members' own (-want +got):\n%s", diff)
	}
	h.Renewed("heard", 0) // it announces nothing any more
	h.Renewed("heard", 0)
	h.want(t, "heard", liveness.Live)
	if diff := cmp.Diff([]clusterset.ClusterID{"heard"}, h.pass(grace+interval)); diff != "" {
		t.Errorf("changed after a heartbeat without an interval (-want +got):\n%s", diff)
	}
}

// TestFlapWindow: a member that has stayed for five minutes after its return has left its past behind.
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
				h.alive["a"] = false
				h.pass(grace + interval)
				h.want(t, "a", liveness.Silent)
				h.alive["a"] = true
			}
			silence()
			h.pass(2 * interval)
			h.want(t, "a", liveness.Live)
			h.pass(test.stay)
			silence()
			h.pass(2 * interval) // enough for one whose past is forgiven
			h.want(t, "a", test.want)
		})
	}
}

// TestAbsent: an absence lasts only while our own heartbeat comes back, and begins anew when the Member was there meanwhile. An
// absent member becomes silent like others.
func TestAbsent(t *testing.T) {
	const timeout = 6 * interval
	h := newHub()
	absent := func(ids ...clusterset.ClusterID) []clusterset.ClusterID { return h.Absent(ids, timeout) }
	want := func(step string, got []clusterset.ClusterID, want ...clusterset.ClusterID) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}
	want("at first", absent("a", "b"))
	h.pass(timeout - interval)
	want("early", absent("a", "b"))
	h.want(t, "a", liveness.Silent)
	want("b has a Member", absent("a"))
	h.now = h.now.Add(time.Hour) // the hub is unreachable
	h.LocalRenewed(h.now)
	want("after an hour without the hub", absent("a", "b"))
	h.pass(interval)
	want("the timeout of a", absent("b", "a"), "a")
	h.pass(timeout - interval)
	want("that of both", absent("b", "a"), "a", "b")
}
