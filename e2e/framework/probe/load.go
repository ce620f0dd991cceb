// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"
)

func load(ctx context.Context, args []string, w world) error {
	flags := newFlags("load", "HOST:PORT")
	network := flags.String("network", "tcp", "tcp, tcp4, tcp6, udp, udp4 or udp6")
	rate := flags.Float64("rate", 50, "requests a second")
	timeout := flags.Duration("timeout", 2*time.Second, "for each request, its lookup included")
	inFlight := flags.Int("inflight", maxInFlight, "how many requests may be under way at once; one more fails")
	operand, err := parse(flags, args, w)
	if err != nil {
		return err
	}
	t, err := newTarget(*network, operand, *timeout, w)
	if err != nil {
		return err
	}
	p, err := newPace(*rate, *inFlight)
	if err != nil {
		return err
	}
	until, cancel := limited(ctx, w)
	defer cancel()
	return loaded(until, t, p, json.NewEncoder(w.out))
}

// loaded sends requests at the pace until ctx ends and prints those that fail, and what all came to.
func loaded(ctx context.Context, t target, p pace, lines *json.Encoder) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sum := tally{begun: time.Now(), figures: figures{ByCluster: map[string]int{}, ByPod: map[string]int{}}}
	run := at(ctx, p, t.single, func() result {
		return result{Time: time.Now().UTC(), Error: tooMany(p)}
	})
	err := run.follow(cancel, lines, func(o outcome[result]) any {
		r := o.value
		sum.add(r.Time, r.MS, r.Error)
		if r.Error != "" {
			return r
		}
		sum.figures.ByCluster[r.Cluster]++
		sum.figures.ByPod[r.Pod]++
		return nil
	})
	if err != nil {
		return err
	}
	return lines.Encode(sum.summary(run.skipped))
}

// tooMany says why a request was not begun.
func tooMany(p pace) string { return fmt.Sprintf("not begun: %d are under way", p.limit) }

// summary is a run's last line.
type summary struct {
	Summary figures `json:"summary"`
}

// tally adds requests up. They may come in any order.
type tally struct {
	begun    time.Time
	figures  figures
	took     []float64   // by each answer, in milliseconds
	answered []time.Time // the moment of each answer
	last     time.Time   // the latest end of any request
}

// add counts a request that began at a time, and failed where text says why.
func (t *tally) add(begun time.Time, ms float64, failure string) {
	ended := begun.Add(time.Duration(ms * float64(time.Millisecond)))
	if ended.After(t.last) {
		t.last = ended
	}
	t.figures.Requests++
	if failure != "" {
		t.figures.Failed++
		return
	}
	t.took = append(t.took, ms)
	t.answered = append(t.answered, ended)
}

// summary returns what the run comes to, which ended when its last request did.
func (t *tally) summary(skipped int) summary {
	all := t.figures
	all.Skipped = skipped
	all.P99MS = percentile(t.took, 99)
	moments := slices.SortedFunc(slices.Values(append(slices.Clone(t.answered), t.last)), time.Time.Compare)
	before := t.begun
	for _, moment := range moments {
		all.LongestGapMS = max(all.LongestGapMS, milliseconds(moment.Sub(before)))
		before = moment
	}
	return summary{all}
}

// percentile returns the smallest value that is not exceeded by that many of 100 (the nearest rank), 0 for no values.
func percentile(values []float64, percent float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(percent / 100 * float64(len(sorted))))
	return sorted[rank-1]
}

// pace is how often something is begun, whether what was begun before has ended or not.
type pace struct {
	interval time.Duration
	limit    int // of how many are under way at once
}

// maxInFlight is how many requests or questions may be under way at once, unless a flag says otherwise.
const maxInFlight = 256

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

// limited returns a context that ends with ctx, and when stdin ends: at once in a container that has not asked for one.
func limited(ctx context.Context, w world) (context.Context, context.CancelFunc) {
	until, cancel := context.WithCancel(ctx)
	go func() {
		if _, err := io.Copy(io.Discard, w.in); err != nil {
			fmt.Fprintln(w.err, "probe: stdin:", err)
		}
		cancel()
	}()
	return until, cancel
}
