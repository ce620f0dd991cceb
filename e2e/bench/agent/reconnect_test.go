// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// testReconnect: all connections come back to a hub that was away, and each figure is there.
func (s *shared) testReconnect(t *testing.T) {
	b := s.newBench(t, 6)
	if err := reconnect(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	b.figures(t,
		"lists of 6 connections to a restarted hub that begin within 250ms, % of all",
		"a connection's first list after the hub is ready, p50, s", "the same, p99, s",
		"a connection reads everything again, p99, s",
		"lists that are streamed (WatchList)", "lists that are not", "watches that go on where they were",
		"reads in flight on the hub, most", "requests that wait for their turn on the hub, most", "requests that the hub turns away",
	)
	lists, all := b.rows[4].Tombolo+b.rows[5].Tombolo, b.rows[4].Tombolo+b.rows[5].Tombolo+b.rows[6].Tombolo
	if least := float64(4 * b.size); all < least {
		t.Errorf("%v reads were answered after the restart, of which each of %d connections needs one for each of 4 kinds", all, b.size)
	}
	if lists > 0 && b.rows[0].Tombolo <= 0 {
		t.Errorf("%v lists, of which %v%% came at once", lists, b.rows[0].Tombolo)
	}
}

func TestDensest(t *testing.T) {
	for name, c := range map[string]struct {
		values []float64
		want   float64
	}{
		"none":          {nil, 0},
		"one":           {[]float64{3}, 1},
		"spread":        {[]float64{0, 1, 2, 3}, 0.25},
		"all at once":   {[]float64{5, 5.1, 5.2, 5.25}, 1},
		"some at once":  {[]float64{0, 1, 1.1, 1.2, 2, 3, 3.1, 9}, 0.375},
		"just too wide": {[]float64{0, 0.25, 0.5}, 2.0 / 3},
	} {
		if got := densest(c.values, 0.25); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
