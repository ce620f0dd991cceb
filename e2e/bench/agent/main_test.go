// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
)

// TestLaps: there are as many rounds as fit into the budget, at least one.
func TestLaps(t *testing.T) {
	for name, c := range map[string]struct {
		rounds int
		each   time.Duration
		before time.Duration // that the part has taken already
		want   int
	}{
		"all fit":                   {rounds: 5, each: time.Minute, want: 5},
		"just fit":                  {rounds: 5, each: 2 * time.Minute, want: 5},
		"three fit":                 {rounds: 5, each: 3 * time.Minute, want: 3},
		"one is too long already":   {rounds: 5, each: time.Hour, want: 1},
		"there is no time at all":   {rounds: 5, each: time.Minute, before: time.Hour, want: 1},
		"some time has gone by":     {rounds: 5, each: time.Minute, before: 8 * time.Minute, want: 2},
		"fewer are wanted anyway":   {rounds: 1, each: time.Minute, want: 1},
		"and they take no time":     {rounds: 3, want: 3},
		"they take ever the same":   {rounds: 2, each: 5 * time.Minute, want: 2},
		"they take a little more":   {rounds: 2, each: 5*time.Minute + 1, want: 1},
		"they take a little less":   {rounds: 2, each: 5*time.Minute - 1, want: 2},
		"one and all of the budget": {rounds: 2, each: 10 * time.Minute, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bench{settings: settings{rounds: c.rounds}, say: t.Logf, began: time.Now().Add(-c.before), budget: 10 * time.Minute}
				got := 0
				for range b.laps {
					time.Sleep(c.each)
					got++
				}
				if got != c.want {
					t.Errorf("%d rounds, want %d", got, c.want)
				}
			})
		})
	}
}

// TestMeasure: a part leaves a table and an array of figures, also where a target is missed; one that fails leaves nothing.
func TestMeasure(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	broken := errors.New("broken")
	p := part{name: "some", size: 7, rounds: 2, share: time.Minute, run: func(_ context.Context, b *bench) error {
		if b.size != 7 || b.rounds != 2 {
			t.Errorf("size %d, %d rounds", b.size, b.rounds)
		}
		b.rows = append(b.rows, report.Within("too much", []float64{3}, report.AtMost(2)))
		return b.plot("curve", report.Plot{Title: "a curve"})
	}}
	rows, err := p.measure(t.Context(), settings{out: out}, 0)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%v, %v", rows, err)
	}
	content, err := os.ReadFile(filepath.Join(out, "bench-some.json"))
	if err != nil {
		t.Fatal(err)
	}
	var read []report.Row
	if err := json.Unmarshal(content, &read); err != nil || !cmp.Equal(rows, read) {
		t.Errorf("%s: %v", content, err)
	}
	for name, has := range map[string]string{"bench-some.md": "MISSED", "bench-some-curve.svg": "a curve"} {
		if content, err := os.ReadFile(filepath.Join(out, name)); err != nil || !strings.Contains(string(content), has) {
			t.Errorf("%s: %s, %v", name, content, err)
		}
	}
	p.name, p.run = "other", func(context.Context, *bench) error { return broken }
	if _, err := p.measure(t.Context(), settings{out: out}, 0); !errors.Is(err, broken) {
		t.Errorf("a broken part ends with %v", err)
	}
	if _, err := os.Stat(filepath.Join(out, "bench-other.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a broken part leaves figures: %v", err)
	}
}

// TestOverrun: a part that takes far too long is broken, and says so.
func TestOverrun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := part{name: "long", size: 1, rounds: 1, share: time.Minute, run: func(ctx context.Context, _ *bench) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		began := time.Now()
		_, err := p.measure(t.Context(), settings{out: t.TempDir()}, 0)
		if err == nil || !strings.Contains(err.Error(), "it takes more than 3 times 1m0s") {
			t.Errorf("it ends with %v", err)
		}
		if took := time.Since(began); took != 3*time.Minute {
			t.Errorf("it ends after %s", took)
		}
	})
}

// TestSpare: the rounds of a part may take the time that the others leave, and no more; a broken part keeps nobody from the
// figures of the others.
func TestSpare(t *testing.T) {
	rounds := map[string]int{}
	long := func(name string, share, each time.Duration) part {
		return part{name: name, size: 1, rounds: 9, share: share, run: func(_ context.Context, b *bench) error {
			for range b.laps {
				<-time.After(each) // of the bubble that it runs in
				rounds[name]++
			}
			b.rows = append(b.rows, report.Figure(name, []float64{1}))
			return nil
		}}
	}
	cases := map[string]struct {
		parts []part
		want  map[string]int
	}{
		"alone":       {[]part{long("a", 10*time.Minute, 4*time.Minute)}, map[string]int{"a": 5}},
		"nothing":     {[]part{long("a", 30*time.Minute, 4*time.Minute), long("b", 30*time.Minute, 7*time.Minute)}, map[string]int{"a": 7, "b": 4}},
		"left over":   {[]part{long("a", 30*time.Minute, time.Minute), long("b", 30*time.Minute, 7*time.Minute)}, map[string]int{"a": 9, "b": 7}},
		"taken":       {[]part{long("a", 20*time.Minute, 35*time.Minute), long("b", 40*time.Minute, 6*time.Minute)}, map[string]int{"a": 1, "b": 4}},
		"none at all": {[]part{long("a", 20*time.Minute, 59*time.Minute), long("b", 40*time.Minute, 6*time.Minute)}, map[string]int{"a": 1, "b": 1}},
	}
	for name, c := range cases {
		clear(rounds)
		synctest.Test(t, func(t *testing.T) {
			if err := measureAll(t.Context(), settings{out: t.TempDir()}, c.parts); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		if diff := cmp.Diff(c.want, rounds); diff != "" {
			t.Errorf("%s: rounds (-want +got):\n%s", name, diff)
		}
	}

	broken, out := errors.New("broken"), t.TempDir()
	err := measureAll(t.Context(), settings{out: out}, []part{
		{name: "a", rounds: 1, share: time.Minute, run: func(context.Context, *bench) error { return broken }},
		long("b", time.Minute, 0),
	})
	content, readErr := os.ReadFile(filepath.Join(out, "bench.md"))
	if !errors.Is(err, broken) || readErr != nil || !strings.Contains(string(content), "| b |") {
		t.Errorf("ends with %v, and leaves %q, %v", err, content, readErr)
	}
}

// TestBudgets: all parts together fit into an hour.
func TestBudgets(t *testing.T) {
	sum := time.Duration(0)
	for _, p := range parts() {
		sum += p.share
	}
	if sum > time.Hour {
		t.Errorf("the parts take %s", sum)
	}
}
