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

// TestSpare: the rounds of a part may take the time that the others leave, and no more.
func TestSpare(t *testing.T) {
	type long struct{ share, each, rounds int } // in minutes; the rounds that it comes to, of nine
	cases := map[string][]long{
		"alone":                     {{10, 4, 5}},
		"there is nothing to spare": {{30, 4, 7}, {30, 7, 4}},
		"a part leaves time":        {{30, 1, 9}, {30, 7, 7}},
		"a part takes another's":    {{20, 35, 1}, {40, 6, 4}},
		"a part takes all the time": {{20, 59, 1}, {40, 6, 1}},
	}
	for name, parts := range cases {
		synctest.Test(t, func(t *testing.T) {
			got := make([]int, len(parts))
			var chosen []part
			for i, l := range parts {
				chosen = append(chosen, part{rounds: 9, share: time.Duration(l.share) * time.Minute, run: func(_ context.Context, b *bench) error {
					for range b.laps {
						time.Sleep(time.Duration(l.each) * time.Minute)
						got[i]++
					}
					return nil
				}})
			}
			if err := measureAll(t.Context(), settings{out: t.TempDir()}, chosen); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for i, l := range parts {
				if got[i] != l.rounds {
					t.Errorf("%s: part %d comes to %d rounds, want %d", name, i, got[i], l.rounds)
				}
			}
		})
	}
}

// TestBroken: a part that is broken keeps nobody from the figures of the others; who interrupts gets none.
func TestBroken(t *testing.T) {
	broken, out := errors.New("broken"), t.TempDir()
	fine := part{name: "b", rounds: 1, share: time.Minute, run: func(_ context.Context, b *bench) error {
		b.rows = append(b.rows, report.Figure("b", []float64{1}))
		return nil
	}}
	err := measureAll(t.Context(), settings{out: out}, []part{
		{name: "a", rounds: 1, share: time.Minute, run: func(context.Context, *bench) error { return broken }},
		fine,
	})
	content, readErr := os.ReadFile(filepath.Join(out, "bench.md"))
	if !errors.Is(err, broken) || readErr != nil || !strings.Contains(string(content), "| b |") {
		t.Errorf("ends with %v, and leaves %q, %v", err, content, readErr)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	stopping := part{name: "a", rounds: 1, share: time.Minute, run: func(context.Context, *bench) error {
		interrupt()
		return nil
	}}
	if err := measureAll(ctx, settings{out: t.TempDir()}, []part{stopping, fine}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted between parts, it ends with %v", err)
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
