// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"sync"
	"time"
)

// pace is how often something is begun, whether what was begun before has ended or not.
type pace struct {
	interval time.Duration
	limit    int // of how many are under way at once
}

// newPace returns the pace of a rate per second, or a usageError.
func newPace(rate float64, limit int) (pace, error) {
	interval := float64(time.Second) / rate
	if !(interval >= 1 && interval <= math.MaxInt64) {
		return pace{}, usageError{fmt.Sprintf("probe: -rate=%v: must be positive", rate)}
	}
	if limit < 1 {
		return pace{}, usageError{fmt.Sprintf("probe: -inflight=%d: must be 1 or more", limit)}
	}
	return pace{time.Duration(interval), limit}, nil
}

// outcome is what became of the number-th that was begun; numbers go up from 0.
type outcome[T any] struct {
	number int
	value  T
}

// paced is a run at a pace.
type paced[T any] struct {
	// outcomes is closed when all that was begun has ended.
	outcomes chan outcome[T]
	// skipped counts what was not begun because this very program came too late, as on a machine that stalls; to make
	// up for it would be a burst, and no constant pace. It is valid once outcomes is closed.
	skipped int
}

// at begins begin at the pace until ctx ends, and lets what is under way end by itself. Where as many are under way as may
// be, refuse takes the place of begin.
func at[T any](ctx context.Context, p pace, begin func(context.Context) T, refuse func() T) *paced[T] {
	run := &paced[T]{outcomes: make(chan outcome[T])}
	go run.loop(ctx, p, begin, refuse)
	return run
}

func (r *paced[T]) loop(ctx context.Context, p pace, begin func(context.Context) T, refuse func() T) {
	defer close(r.outcomes)
	var underWay sync.WaitGroup
	defer underWay.Wait()
	free := make(chan struct{}, p.limit)
	next := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for number := 0; ; number++ {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		select {
		case free <- struct{}{}:
			underWay.Go(func() {
				value := begin(context.WithoutCancel(ctx))
				<-free
				r.outcomes <- outcome[T]{number, value}
			})
		default:
			value := refuse()
			underWay.Go(func() { r.outcomes <- outcome[T]{number, value} })
		}
		next = next.Add(p.interval)
		if late := time.Since(next); late >= p.interval {
			missed := int(late / p.interval)
			r.skipped += missed
			next = next.Add(time.Duration(missed) * p.interval)
		}
		timer.Reset(time.Until(next))
	}
}

// started is printed after the first outcome, whatever it was, so that a caller knows that the run is under way.
type started struct {
	Started bool `json:"started"`
}

// follow prints the line that look returns for an outcome, where it returns one, until all have ended. Where a line cannot
// be printed, the run has no reader any more, and stop ends it.
func (r *paced[T]) follow(stop func(), lines *json.Encoder, look func(outcome[T]) any) error {
	var failed error
	warned := false
	for o := range r.outcomes {
		line := look(o)
		if failed == nil && line != nil {
			failed = lines.Encode(line)
		}
		if failed == nil && !warned {
			warned = true
			failed = lines.Encode(started{true})
		}
		if failed != nil {
			stop()
		}
	}
	return failed
}

// limited returns a context that ends with ctx and, where duration is 0, when stdin ends, else after the duration. A
// container has no stdin unless it asks for one: then only the duration keeps a program from ending at once.
func limited(ctx context.Context, w world, duration time.Duration) (context.Context, context.CancelFunc) {
	if duration > 0 {
		return context.WithTimeout(ctx, duration)
	}
	until, cancel := context.WithCancel(ctx)
	go func() {
		if _, err := io.Copy(io.Discard, w.in); err != nil {
			fmt.Fprintln(w.err, "probe: stdin:", err)
		}
		cancel()
	}()
	return until, cancel
}
