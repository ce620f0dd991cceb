// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"
)

// carried returns how many changes a second the machine carries in the background of the floor, at most those that are wanted: with
// more, whoever is measured waits in a queue that only grows.
func (r *latencyRun) carried(ctx context.Context) (rate int, err error) {
	working, stop, err := startBare(ctx, r.w, r.subjects, latencyWidth, r.say)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop(), r.w.wipe(ctx)) }()
	known := r.subjects[:r.probes+r.crowd]
	if _, err := r.exportAll(working, r.w, known); err != nil {
		return 0, err
	}
	others, err := newChanger(working, r.w.members[0], known[r.probes:])
	if err != nil {
		return 0, err
	}
	seen, err := watchSightings(working, r.w.members[1])
	if err != nil {
		return 0, err
	}
	length := max(time.Second, trialTime*time.Duration(min(r.size, backgroundRate))/(2*backgroundRate))
	carried, err := r.carries(working, r.w, nil, float64(r.rate), trial{
		run: func(ctx context.Context, rate float64) (float64, error) {
			stop := others.background(ctx, int(rate))
			err := pause(ctx, length)
			made, stopErr := stop()
			return made, errors.Join(err, stopErr)
		},
		settle: func(ctx context.Context) error { return r.drained(ctx, others, seen) },
	})
	return int(carried), err
}

// drained returns when what a trial has left waiting has been worked off: a change goes through every lane of the floor.
func (r *latencyRun) drained(ctx context.Context, others *changer, seen *sightings) error {
	for i := range min(latencyWidth, len(others.slices)) {
		var sighted <-chan time.Time
		taken, err := others.change(ctx, i, func(address string) { sighted = seen.expect(address) })
		if err != nil {
			return err
		}
		if _, err := lag(ctx, taken, sighted); err != nil {
			return err
		}
	}
	return nil
}
