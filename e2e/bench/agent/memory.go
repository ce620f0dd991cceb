// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
)

// readings is how often an agent is looked at while changes come.
const readings = 60

// reading is what an agent uses at a time, and what waits in its queues.
type reading struct {
	after    time.Duration
	resident float64 // MB
	waiting  float64 // keys
}

// observe looks at an agent for a time. The function that it returns waits for the end of that and returns what was seen.
func (a *agentProcess) observe(ctx context.Context, length time.Duration) func() ([]reading, error) {
	var result []reading
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		began := time.Now()
		for i := 1; i <= readings && failed == nil; i++ {
			if failed = pause(ctx, time.Until(began.Add(length*time.Duration(i)/readings))); failed != nil {
				return
			}
			r := reading{after: time.Since(began)}
			if r.waiting, failed = a.samples(ctx, "workqueue_depth"); failed != nil {
				return
			}
			var u usage
			u, failed = usageOf(ctx, a.cmd.Process.Pid)
			r.resident = megabytes(u.resident)
			result = append(result, r)
		}
	}()
	return func() ([]reading, error) {
		<-done
		return result, failed
	}
}

// megabytes is the unit of all memory that is as large.
func megabytes(bytes int) float64 { return float64(bytes) / 1e6 }

// ends returns the medians of what was seen in the first and the last fifth of the time.
func ends(all []reading, of func(reading) float64) (first, last float64) {
	n := max(1, len(all)/5)
	values := func(some []reading) []float64 {
		var result []float64
		for _, r := range some {
			result = append(result, of(r))
		}
		return result
	}
	return report.Median(values(all[:min(n, len(all))])), report.Median(values(all[max(0, len(all)-n):]))
}

// settledFor is for how long an agent's memory may not have become less until it counts as settled: Go gives back to the
// system what it does not need bit by bit. A quick look is content with less.
const settledFor, settledForFew = 5 * time.Second, 500 * time.Millisecond

// settledFor returns for how long memory must have settled.
func (r *scaleRun) settledFor() time.Duration {
	if r.size < fewServices*fewServices {
		return settledForFew
	}
	return settledFor
}

// settledMemory returns what is resident of an agent in bytes, once it has collected its garbage and given back what it
// does not need, so that it has not become less for a time. That is what an idle agent comes to by itself, as Go collects every two minutes.
func (a *agentProcess) settledMemory(ctx context.Context, settled time.Duration) (int, error) {
	if err := a.collect(ctx); err != nil {
		return 0, fmt.Errorf("have the agent of %s collect its garbage: %w", a.id, err)
	}
	var recent []int
	for {
		u, err := usageOf(ctx, a.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		recent = append(recent, u.resident)
		const interval = 250 * time.Millisecond
		if n := int(settled / interval); len(recent) > n && slices.Min(recent[len(recent)-n:]) >= recent[len(recent)-n-1]*99/100 {
			return u.resident, nil
		}
		if err := pause(ctx, interval); err != nil {
			return 0, err
		}
	}
}

// collect has the agent collect its garbage, which Go does before it shows its heap when asked to.
func (a *agentProcess) collect(ctx context.Context) error {
	heap, err := fetch(ctx, "http://"+a.profile+"/debug/pprof/heap?gc=1")
	if err != nil {
		return err
	}
	defer heap.Close()
	_, err = io.Copy(io.Discard, heap)
	return err
}
