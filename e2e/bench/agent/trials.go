// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// What is left of the machine must be enough for the servers to answer in time: trials go on with fewer changes a second
// while those of before took more of it than busiest, or came more than slightly later than they should.
const busiest, slightly, mostTrials, leastRate = 0.85, 0.95, 8, 1.0

// trial is how a rate of changes is tried.
type trial struct {
	// run makes changes for a while, and returns how many a second it made.
	run func(ctx context.Context, rate float64) (float64, error)
	// settle returns when what they have left waiting has been worked off.
	settle func(context.Context) error
}

// carries returns how many changes a second this machine carries, at most those that are wanted, which are tried first.
func (b *bench) carries(ctx context.Context, w *world, running agents, rate float64, try trial) (float64, error) {
	for range mostTrials {
		before, err := sharesOf(ctx, w, running)
		if err != nil {
			return 0, err
		}
		began := time.Now()
		made, err := try.run(ctx, rate)
		if err != nil {
			return 0, err
		}
		took := time.Since(began)
		after, err := sharesOf(ctx, w, running)
		if err != nil {
			return 0, err
		}
		if err := try.settle(ctx); err != nil {
			return 0, err
		}
		busy := after.since(before).busy(took)
		b.say("a trial with %.0f changes a second: %.0f were made, and %.0f%% of the CPU were used", rate, made, 100*busy)
		next := lowered(rate, made, busy)
		if next == rate {
			break
		}
		rate = next
	}
	return rate, nil
}

// lowered returns the rate to go on with after one with which so many changes a second were made while so much of the
// machine was busy: the same where that was well.
func lowered(rate, made, busy float64) float64 {
	if made >= slightly*rate && busy <= busiest {
		return rate
	}
	return max(leastRate, slightly*min(made, rate*busiest/max(busy, busiest)))
}
