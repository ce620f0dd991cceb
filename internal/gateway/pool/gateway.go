// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"slices"
	"time"
)

// gateway is what is known of an address.
type gateway struct {
	dials  []Dial // that have not ended, the oldest first
	window int    // the largest number of dials
	number uint64 // of the last dial
	began  time.Time
	// took is the time of the last dial that was answered, and answered when the latest of those began.
	took     time.Duration
	answered time.Time
	// proven is set after the first answer, and suspect after a failure until the next answer.
	proven, suspect bool
	// full is set after a stream was refused because of a limit, until one opens on a later connection.
	full bool
	// failures are counted up to the next stream, or for forgetAfter. Those of dials that began before failedAt count as one.
	failures int
	failedAt time.Time
	err      error
	jitter   float64
	// exhausted is the last client for which the address has failed: a dial that began later has failed, and no older one is left; or any has,
	// and none is left; or a stream was refused because of a limit on the connection of a dial that began later.
	exhausted Waiter
}

func (g *gateway) remove(d Dial) {
	g.dials = slices.DeleteFunc(g.dials, func(other Dial) bool { return other.number == d.number })
}

// fail counts a failure of a dial, or of its connection, unless the dial is older than the last failure.
func (g *gateway) fail(d Dial, err error, now time.Time, jitter float64) {
	if d.Began.After(g.failedAt) {
		g.pauseAfter(now, jitter)
		g.suspect, g.err = true, err
	}
}

// pauseAfter counts what a pause follows.
func (g *gateway) pauseAfter(now time.Time, jitter float64) {
	if !g.suspect && now.Sub(g.failedAt) > forgetAfter {
		g.failures = 0
	}
	g.failures, g.failedAt, g.jitter, g.window = g.failures+1, now, jitter, firstDials
}

// isGood reports whether the gateway is dialed without pauses.
func (g *gateway) isGood() bool { return !g.suspect && !g.full }

// answer says that the gateway has answered on a connection. That of a dial from before the last failure says nothing about new dials.
func (g *gateway) answer(d Dial) bool {
	if !d.Began.After(g.failedAt) {
		return false
	}
	g.proven, g.suspect, g.err = true, false, nil
	return true
}

// pause returns the time from the last failure to the next dial, which is at most a given one.
func (g *gateway) pause(most time.Duration) time.Duration {
	pause := min(firstPause<<min(g.failures-1, 20), most)
	return pause - time.Duration(g.jitter*float64(pause/2))
}

// probe returns when the next dial to a gateway that is not good may begin, and false if there are enough that began after the failure. most
// is the longest time between two.
func (g *gateway) probe(most time.Duration) (time.Time, bool) {
	n := 0
	for _, d := range g.dials {
		if d.Began.After(g.failedAt) {
			n++
		}
	}
	if n == 0 {
		last := g.failedAt
		if g.began.After(last) {
			last = g.began
		}
		return last.Add(g.pause(most)), true
	}
	return g.dials[len(g.dials)-1].Began.Add(most), n < firstDials
}

// patience returns the time after which a dial is slow.
func (g *gateway) patience() time.Duration {
	return min(max(slowAfter, g.took+g.took/2), maxSlowAfter)
}

// load is what the dials to a good gateway say.
type load struct {
	fresh    int // dials that are not slow
	slow     int // dials that are
	occupied int // of the window: not slow ones that are older than an answer, which may have no end
	// stalled is set if no dial has begun for maxSlowAfter.
	stalled bool
	wake    time.Time // when this changes; zero if it does not
}

func (g *gateway) load(now time.Time) load {
	var l load
	for _, d := range g.dials {
		slow := d.Began.Add(g.patience())
		switch {
		case now.Before(slow):
			l.fresh++
			if l.wake.IsZero() {
				l.wake = slow
			}
		case d.Began.After(g.answered):
			l.slow++
			l.occupied++
		default:
			l.slow++
		}
	}
	l.occupied += l.fresh
	if n := len(g.dials); n > 0 {
		stalls := g.dials[n-1].Began.Add(maxSlowAfter)
		if l.stalled = !now.Before(stalls); !l.stalled && l.wake.IsZero() {
			l.wake = stalls
		}
	}
	return l
}

// accepts reports whether one more dial may begin. If there are as many as needed, it is one beside slow ones, which may still be answered.
func (g *gateway) accepts(l load, needed int) bool {
	switch {
	case len(g.dials) >= maxDials+maxDials/2:
		return false
	case l.stalled:
		return true
	case needed <= 0 && l.slow > 0:
		return false
	default:
		return l.occupied < g.window
	}
}
