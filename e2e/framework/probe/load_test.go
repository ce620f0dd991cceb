// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// The pace holds whatever the requests do, until it ends; then what is under way ends by itself.
func TestPace(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		takes time.Duration
		limit int
		want  map[int]string // by number: when it ended, and what it was
	}{
		"quick": {
			takes: 10 * time.Millisecond, limit: 1,
			want: map[int]string{0: "10ms begun", 1: "110ms begun", 2: "210ms begun", 3: "310ms begun"},
		},
		"slow": {
			takes: time.Second, limit: 9,
			want: map[int]string{0: "1s begun", 1: "1.1s begun", 2: "1.2s begun", 3: "1.3s begun"},
		},
		"too many": {
			takes: 250 * time.Millisecond, limit: 2,
			want: map[int]string{0: "250ms begun", 1: "350ms begun", 2: "200ms refused", 3: "550ms begun"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 350*time.Millisecond)
				defer cancel()
				run := at(ctx, pace{100 * time.Millisecond, test.limit}, func(ctx context.Context) string {
					select {
					case <-time.After(test.takes): //nolint:forbidigo // the clock of a synctest bubble
					case <-ctx.Done():
						t.Error("a request was stopped halfway")
					}
					return "begun"
				}, func() string { return "refused" })
				got := map[int]string{}
				for o := range run.outcomes {
					got[o.number] = time.Since(start).String() + " " + o.value
				}
				if diff := cmp.Diff(test.want, got); diff != "" || run.skipped != 0 {
					t.Errorf("%d skipped; (-want +got):\n%s", run.skipped, diff)
				}
			})
		})
	}
}

type line struct {
	result
	started
	Summary *figures `json:"summary"`
}

// loading is a run of load or resolve under way.
type loading struct {
	out   lab.Buffer
	stdin *io.PipeWriter
	ended chan int
}

func startLoad(t *testing.T, w world, args ...string) *loading {
	t.Helper()
	reader, writer := io.Pipe()
	l := &loading{stdin: writer, ended: make(chan int, 1)}
	w.in, w.out, w.err = reader, &l.out, t.Output()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.ended <- run(t.Context(), args, w)
	}()
	t.Cleanup(func() {
		writer.Close()
		<-done
	})
	return l
}

// finish ends stdin and returns all output.
func (l *loading) finish(t *testing.T) string {
	t.Helper()
	l.stdin.Close()
	if status := <-l.ended; status != 0 {
		t.Fatalf("status %d, want 0", status)
	}
	return l.out.String()
}

// There is a line of each failure and of nothing else, as soon as it is known.
func TestLoadFailures(t *testing.T) {
	t.Parallel()
	s := startScripted(t, func(number int, conn net.Conn, reader *bufio.Reader) {
		if number%3 == 2 {
			httpReply(conn, reader, "good")
		}
	})
	l := startLoad(t, here(t), "load", "-network", "tcp4", "-rate", "100", "-timeout", waitLimit.String(), hostPort("127.0.0.1", s.port))
	lab.Holds(t, waitLimit, "five failures", func() bool { return strings.Count(l.out.String(), `"error"`) >= 5 })
	lines := decoded[line](t, strings.NewReader(l.finish(t)))
	last := lines[len(lines)-1].Summary
	if last == nil {
		t.Fatalf("no summary: %+v", lines)
	}
	startedLines, failed := 0, 0
	for _, one := range lines[:len(lines)-1] {
		switch {
		case one.Started:
			startedLines++
		case one.Error != "":
			failed++
		default:
			t.Errorf("unexpected %+v", one)
		}
	}
	requests := s.count(t)
	if startedLines != 1 || failed != last.Failed || last.Requests != requests || last.ByPod["good"] != requests/3 || last.Failed != requests-requests/3 {
		t.Errorf("%d connections, %d started, %d failures printed, %+v", requests, startedLines, failed, last)
	}
}

// The figures of known requests.
func TestTally(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
	for name, test := range map[string]struct {
		add  func(*tally)
		want string
	}{
		"nothing": {func(sum *tally) { sum.last = begun }, `{"summary":{"requests":0,"failed":0,"longestGapMs":0,"p99ms":0}}`},
		"in any order": {func(sum *tally) {
			sum.add(at(90), 10, "")
			sum.add(at(0), 20, "")
			sum.add(at(300), 5, "")
			sum.add(at(150), 2, "lost")
		}, `{"summary":{"requests":4,"failed":1,"longestGapMs":205,"p99ms":20}}`},
		"a gap at the end": {func(sum *tally) {
			sum.add(at(0), 1, "")
			sum.add(at(100), 1000, "lost")
		}, `{"summary":{"requests":2,"failed":1,"longestGapMs":1099,"p99ms":1}}`},
		"a gap at the beginning": {func(sum *tally) {
			sum.add(at(0), 100, "lost")
			sum.add(at(400), 1.5, "")
		}, `{"summary":{"requests":2,"failed":1,"longestGapMs":401.5,"p99ms":1.5}}`},
		"nothing but failures": {func(sum *tally) {
			sum.add(at(0), 100, "lost")
			sum.add(at(50), 100, "lost")
		}, `{"summary":{"requests":2,"failed":2,"longestGapMs":150,"p99ms":0}}`},
		"one slow answer of 100": {func(sum *tally) {
			for i := range 100 {
				sum.add(at(i), map[bool]float64{false: 2, true: 50}[i == 7], "")
			}
		}, `{"summary":{"requests":100,"failed":0,"longestGapMs":2,"p99ms":2}}`},
		"two slow answers of 100": {func(sum *tally) {
			for i := range 100 {
				sum.add(at(i), map[bool]float64{false: 2, true: 50}[i == 7 || i == 70], "")
			}
		}, `{"summary":{"requests":100,"failed":0,"longestGapMs":19,"p99ms":50}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sum := tally{begun: begun}
			test.add(&sum)
			got, err := json.Marshal(sum.summary(0))
			if err != nil || string(got) != test.want {
				t.Errorf("%s, %v\nwant %s", got, err, test.want)
			}
		})
	}
}
