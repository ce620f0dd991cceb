// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A like machine is one of 2 cores. What it has been seen to do, and the share of it below which a run says nothing.
const (
	oneAtATime   = 620.0  // EndpointSlice writes/s
	tenInFlight  = 1300.0 // the same
	leastOfFloor = 0.8
)

// calibration is how many writes tell how fast an API server is; fewer do for a quick look.
const calibration = 600

// calibrate returns an error where an API server is far slower than others have been seen to be, unless the run is to go
// on with any machine.
func (b *bench) calibrate(ctx context.Context, m *member) error {
	for _, width := range []int{1, 10} {
		usual := map[int]float64{1: oneAtATime, 10: tenInFlight}[width]
		rate, err := b.bestRate(ctx, m, width, leastOfFloor*usual)
		if err != nil {
			return fmt.Errorf("calibrate: %w", err)
		}
		b.say("calibration: %.0f EndpointSlices written a second with %d in flight (elsewhere: %.0f)", rate, width, usual)
		if err := b.judge(width, rate, usual); err != nil {
			return err
		}
	}
	return nil
}

// mostCalibrations is how often an API server, which has just been started and has work of its own for some seconds, may show what
// it can do.
const mostCalibrations = 5

// bestRate returns the best of several rates, of which the first that is enough is the last.
func (b *bench) bestRate(ctx context.Context, m *member, width int, enough float64) (best float64, err error) {
	for range mostCalibrations {
		rate, err := writeRate(ctx, m, width, min(calibration, 10*b.size))
		if err != nil {
			return 0, err
		}
		if best = max(best, rate); best >= enough {
			break
		}
	}
	return best, nil
}

// judge returns an error where a rate is too low to go on with.
func (b *bench) judge(width int, rate, usual float64) error {
	if rate >= leastOfFloor*usual {
		return nil
	}
	if !b.anyhow {
		return fmt.Errorf("the floor is too low: %.0f writes/s with %d in flight, less than %.0f%% of %.0f: is the machine busy? Pass -any-machine to go on", rate, width, 100*leastOfFloor, usual)
	}
	b.say("the floor is too low; going on, as -any-machine says: the figures hold for this machine only, and the ratios say less")
	return nil
}

// writeRate returns how many EndpointSlices a second a member's API server creates.
func writeRate(ctx context.Context, m *member, width, writes int) (float64, error) {
	template, err := newSubject(m, 0)
	if err != nil {
		return 0, err
	}
	label := map[string]string{"bench": "calibration"}
	began := time.Now()
	err = each(ctx, width, slices.Collect(upTo(writes)), func(ctx context.Context, i int) error {
		slice := template.slice.DeepCopy()
		slice.Name, slice.Labels = fmt.Sprintf("calibration-%d", i), label
		return m.kube.Create(ctx, slice)
	})
	if err != nil {
		return 0, err
	}
	rate := float64(writes) / time.Since(began).Seconds()
	return rate, m.kube.DeleteAllOf(ctx, &discoveryv1.EndpointSlice{}, client.InNamespace(namespace), client.MatchingLabels(label))
}

// upTo counts from 0 to n-1.
func upTo(n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}
