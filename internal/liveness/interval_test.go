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

// TestInterval: the interval is the configured one up to 100 members, then longer in proportion, and never longer than the schema allows.
func TestInterval(t *testing.T) {
	for _, test := range []struct {
		configured time.Duration
		members    int
		want       time.Duration
	}{
		{interval, 0, interval},
		{interval, 1, interval},
		{interval, 100, interval},
		{interval, 101, interval + interval/100},
		{interval, 200, 20 * time.Second},
		{interval, 1000, 100 * time.Second},
		{interval, 3000, 5 * time.Minute},
		{interval, 3001, 5 * time.Minute},
		{interval, 1_000_000, 5 * time.Minute},
		{time.Second, 1000, 10 * time.Second},
		{time.Minute, 1000, 5 * time.Minute},
		{5 * time.Minute, 2, 5 * time.Minute},
		{5 * time.Minute, 1000, 5 * time.Minute},
	} {
		if got := liveness.Interval(test.configured, test.members); got != test.want {
			t.Errorf("%d members, %s configured: %s, want %s", test.members, test.configured, got, test.want)
		}
	}
}

// TestLongerLocalInterval: with a longer local interval, time counts over longer gaps. A member with the configured interval, such as
// an earlier version of the agent, is silent after four of the local intervals, not after four of its own: time counts once in each
// local interval.
//
// spec: D9
func TestLongerLocalInterval(t *testing.T) {
	const long = 10 * interval
	h := newHub("short", "long")
	clear(h.renewing)
	renew := func(n int, ids ...clusterset.ClusterID) (changed []clusterset.ClusterID) {
		for range n {
			h.now = h.now.Add(long)
			changed = append(changed, h.LocalRenewed(h.now, long)...)
			for _, id := range ids {
				h.Renewed(id, map[clusterset.ClusterID]time.Duration{"short": interval, "long": long}[id])
			}
		}
		return changed
	}
	if changed := renew(20, "short", "long"); changed != nil {
		t.Errorf("%v changed while all renew", changed)
	}
	h.want(t, "short", liveness.Live)
	if changed := renew(liveness.GracePeriods, "long"); changed != nil {
		t.Errorf("%v changed within four local intervals", changed)
	}
	check.Equal(t, "changed after them", []clusterset.ClusterID{"short"}, renew(1, "long"))
	h.now = h.now.Add(long) // the last heartbeat at the long interval is renewed at the short one again
	h.LocalRenewed(h.now, interval)
	h.Renewed("long", interval)
	h.pass(grace)
	h.want(t, "long", liveness.Live)
	h.pass(interval)
	h.want(t, "long", liveness.Silent)
}

// TestGapBeforeShorterInterval: the heartbeat that names a shorter interval was due after the longer one before it, so the time between
// both counts.
//
// spec: D9
func TestGapBeforeShorterInterval(t *testing.T) {
	const long = 10 * interval
	for name, test := range map[string]struct {
		gap  time.Duration
		want liveness.State
	}{
		"at the long interval":    {long, liveness.Silent},
		"the longest that counts": {2*long + long/2, liveness.Silent},
		"one that is longer":      {2*long + long/2 + 1, liveness.Live},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub("a")
			h.now = h.now.Add(interval)
			h.LocalRenewed(h.now, long)
			h.Renewed("a", 0)
			h.now = h.now.Add(test.gap)
			h.LocalRenewed(h.now, interval)
			h.now = h.now.Add(time.Second)
			h.LocalRenewed(h.now, interval) // the grace period of the short interval applies
			h.want(t, "a", test.want)
		})
	}
}
