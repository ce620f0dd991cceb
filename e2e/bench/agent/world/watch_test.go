// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestObserver: a change arrives with itself or with a later one of its series, before or after the API server's answer.
func TestObserver(t *testing.T) {
	o, start := newObserver(), time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	first, second, third, other := o.Expect("p", "1"), o.Expect("p", "2"), o.Expect("p", "3"), o.Expect("q", "4")
	first.WasSent(at(0))
	second.WasSent(at(30))
	o.see("9", at(100))
	o.see("2", at(100))
	o.see("3", at(110))
	third.WasSent(at(120))
	o.see("1", at(130)) // an old state again
	if got := len(o.series["q"]) + len(o.series["p"]); got != 1 {
		t.Errorf("%d changes have not arrived", got)
	}
	other.WasSent(at(140))
	o.see("4", at(142))
	all, err := o.AwaitAll(t.Context(), time.Second)
	var got []float64
	for _, c := range all {
		got = append(got, c.Latency())
	}
	if diff := cmp.Diff([]float64{100, 70, 0, 2}, got); diff != "" || err != nil {
		t.Errorf("latencies (-want +got):\n%s, %v", diff, err)
	}
}
