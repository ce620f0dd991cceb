// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

func load(ctx context.Context, args []string, w world) error {
	flags := newFlags("load", "HOST:PORT")
	network := flags.String("network", "tcp", "tcp, tcp4, tcp6, udp, udp4 or udp6")
	rate := flags.Float64("rate", 50, "requests a second")
	timeout := flags.Duration("timeout", 2*time.Second, "for each request, its lookup included")
	inFlight := flags.Int("inflight", 256, "how many requests may be under way at once; one more fails")
	duration := flags.Duration("for", 0, "how long; 0 until stdin ends, which without -for is what ends the run, or SIGTERM")
	trace := flags.Bool("trace", false, "print the requests that succeed, too")
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
	show := func(r result) bool { return r.Error != "" }
	if *trace {
		show = func(result) bool { return true }
	}
	until, cancel := limited(ctx, w, *duration)
	defer cancel()
	return loaded(until, t, p, show, json.NewEncoder(w.out))
}

// loaded sends requests at the pace until ctx ends and prints those to show, and what all came to.
func loaded(ctx context.Context, t target, p pace, show func(result) bool, lines *json.Encoder) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sum := tally{begun: time.Now(), figures: figures{ByCluster: map[string]int{}, ByPod: map[string]int{}}}
	run := at(ctx, p, t.single, func() result {
		return result{Time: time.Now().UTC(), Error: tooMany(p)}
	})
	err := run.follow(cancel, lines, func(o outcome[result]) any {
		r := o.value
		sum.add(r.Time, r.MS, r.Error)
		if r.Error == "" {
			sum.figures.ByCluster[r.Cluster]++
			sum.figures.ByPod[r.Pod]++
		}
		if show(r) {
			return r
		}
		return nil
	})
	if err != nil {
		return err
	}
	return lines.Encode(sum.summary(run.skipped))
}

// tooMany says why a request was not begun.
func tooMany(p pace) string { return fmt.Sprintf("not begun: %d are under way", p.limit) }

// figures are what all requests of a run come to.
type figures struct {
	Requests int `json:"requests"`
	// Failed counts those that got no answer, those that could not be begun among them.
	Failed int `json:"failed"`
	// Skipped counts requests that this program did not begin because its machine stood still.
	Skipped   int            `json:"skipped,omitempty"`
	ByCluster map[string]int `json:"byCluster,omitzero"`
	ByPod     map[string]int `json:"byPod,omitzero"`
	ByRcode   map[string]int `json:"byRcode,omitzero"`
	// Changes counts the answers that differed from the one before, the first not among them.
	Changes int `json:"changes,omitempty"`
	// LongestGapMS is the longest time without an answer: between two, before the first or after the last.
	LongestGapMS float64 `json:"longestGapMs"`
	// P99MS is what 99 of 100 answers took at most.
	P99MS float64 `json:"p99ms"`
}

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
