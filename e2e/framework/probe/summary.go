// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"time"
)

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
