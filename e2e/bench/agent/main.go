// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command agent measures how fast the agents are, and what they ask of the API servers, against a bare client that makes
// the necessary writes and watches and nothing else (the floor): make bench. Both work on the same real API servers, one
// after the other in each round, with the same credentials, under the hub's quota and policies.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// settings are the flags.
type settings struct {
	size   int
	rounds int
	agent  string
	out    string
	anyhow bool
	always bool
	delay  time.Duration
	// world returns where a part works: a world of its own, unless there is one to share.
	world opener
}

// sayer tells a person what happens.
type sayer func(format string, args ...any)

// bench is the run of one part.
type bench struct {
	settings
	part  string
	say   sayer
	rows  []report.Row
	began time.Time
	curve []report.Point // of the last export of many services: how many percent were complete after how many seconds
	// budget is the time that the part should take; what its rounds cannot do in it they leave out.
	budget time.Duration
}

// part is one of the benchmarks.
type part struct {
	name string
	size int // the full one
	// rounds of each figure.
	rounds int
	// share is the part's of an hour, on two cores.
	share time.Duration
	run   func(context.Context, *bench) error
}

// parts returns all, with the one last whose rounds take whatever time there is.
func parts() []part {
	return []part{
		{"latency", 300, 5, 14 * time.Minute, latency},
		{"fanout", 16, 5, 7 * time.Minute, fanout},
		{"restart", 10_000, 1, 5 * time.Minute, restart},
		{"reconnect", 100, 1, 3 * time.Minute, reconnect},
		{"scale", scaleSize, 1, 18 * time.Minute, scale},
		{"propagation", 2000, 5, 12 * time.Minute, propagation},
	}
}

// A part may take so many times its share where others leave the time; if it takes overrun times its share, it is broken.
const stretch, overrun = 2, 3

func main() {
	s := settings{world: newWorld}
	flag.IntVar(&s.size, "size", 0, "how much is measured, in the part's own unit; 0 for what the targets are about")
	flag.IntVar(&s.rounds, "rounds", 0, "rounds of each figure, of which the median counts; 0 for the part's own number")
	flag.StringVar(&s.agent, "agent", "", "path of tombolo-agent (default bin/tombolo-agent of this repository)")
	flag.StringVar(&s.out, "out", "out", "folder for the figures, as bench-<part>.json and bench-<part>.md")
	flag.BoolVar(&s.anyhow, "any-machine", false, "go on although the API servers are far slower than has been seen elsewhere: the ratios say less then")
	flag.BoolVar(&s.always, "profile", false, "take profiles of the agents' CPU in propagation even where no target is missed")
	flag.DurationVar(&s.delay, "agent-delay", 0, "hold back whatever agents send for so long, to see that it shows")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // what is deferred only ends the handling of signals
	}
}

// run runs the parts of these names; all where there are none.
func run(ctx context.Context, s settings, names []string) error {
	if s.agent == "" {
		root, err := lab.Root()
		if err != nil {
			return err
		}
		s.agent = filepath.Join(root, "bin", "tombolo-agent")
	}
	if _, err := os.Stat(s.agent); err != nil {
		return fmt.Errorf("%w: run \"make bench\"", err)
	}
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	return measureAll(ctx, s, chosen)
}

// measureAll runs parts within an hour, if none takes more than its share. One that is broken keeps nobody from the others' figures.
func measureAll(ctx context.Context, s settings, chosen []part) error {
	spare := time.Hour
	for _, p := range chosen {
		spare -= p.share
	}
	var rows []report.Row
	var broken error
	for _, p := range chosen {
		if ctx.Err() != nil {
			return errors.Join(broken, ctx.Err())
		}
		began := time.Now()
		measured, err := p.measure(ctx, s, spare)
		if err != nil {
			broken = errors.Join(broken, fmt.Errorf("%s: %w", p.name, err))
		}
		spare += p.share - time.Since(began)
		rows = append(rows, measured...)
	}
	if len(chosen) == 1 {
		return broken // its table is all there is
	}
	return errors.Join(broken, tell(filepath.Join(s.out, "bench.md"), rows))
}

// choose returns the parts of these names; all where there are none.
func choose(names []string) ([]part, error) {
	all := parts()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(p part) bool { return p.name == name }) {
			return nil, fmt.Errorf("there is no part %q", name)
		}
	}
	return slices.DeleteFunc(all, func(p part) bool { return len(names) > 0 && !slices.Contains(names, p.name) }), nil
}

// measure runs a part and writes its table, which it returns. Where a target is missed that is told, and is no error.
// spare is the time that its rounds may take beyond the part's share, or that others have taken of it.
func (p part) measure(ctx context.Context, s settings, spare time.Duration) ([]report.Row, error) {
	b := p.newBench(s, spare)
	b.say("begins; it should take %s at most", b.budget.Round(time.Second))
	bounded, cancel := context.WithTimeoutCause(ctx, overrun*p.share, fmt.Errorf("it takes more than %d times %s", overrun, p.share))
	defer cancel()
	if err := p.run(bounded, b); err != nil {
		if ctx.Err() != nil {
			return nil, errors.New("interrupted")
		}
		if cause := context.Cause(bounded); cause != nil {
			err = errors.Join(cause, err)
		}
		b.say("is broken: %v", err)
		return nil, err
	}
	b.say("ends")
	path := filepath.Join(s.out, "bench-"+p.name)
	if err := report.WriteJSON(path+".json", b.rows); err != nil {
		return nil, err
	}
	return b.rows, tell(path+".md", b.rows)
}

// newBench returns a run of the part.
func (p part) newBench(s settings, spare time.Duration) *bench {
	b := &bench{settings: s, part: p.name, began: time.Now(), budget: min(p.share+spare, stretch*p.share)}
	b.say = func(format string, args ...any) {
		fmt.Fprintf(os.Stdout, "%6.1f s  %s: %s\n", time.Since(b.began).Seconds(), p.name, fmt.Sprintf(format, args...))
	}
	if b.size == 0 {
		b.size = p.size
	}
	if b.rounds == 0 {
		b.rounds = p.rounds
	}
	return b
}

// tell prints a table and writes it to a file.
func tell(path string, rows []report.Row) error {
	var table strings.Builder
	if err := report.Markdown(&table, rows); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "\n%s\n", table.String())
	return os.WriteFile(path, []byte(table.String()), 0o644) //nolint:gosec // figures are for all to read
}

// laps counts rounds, of which there is at least one, and ends early where the budget has no room for one more that takes
// as long as the longest.
func (b *bench) laps(yield func(int) bool) {
	longest := time.Duration(0)
	for round := range b.rounds {
		began := time.Now()
		if round > 0 && began.Add(longest).After(b.began.Add(b.budget)) {
			b.say("only %d of %d rounds fit into %s on this machine", round, b.rounds, b.budget.Round(time.Second))
			return
		}
		if !yield(round) {
			return
		}
		longest = max(longest, time.Since(began))
	}
}

// plot writes a chart beside the part's table.
func (b *bench) plot(name string, p report.Plot) error {
	path := filepath.Join(b.out, fmt.Sprintf("bench-%s-%s.svg", b.part, name))
	b.say("%s: see %s", p.Title, path)
	return p.Write(path)
}

// missed says whether a target was.
func (b *bench) missed() bool {
	return slices.ContainsFunc(b.rows, func(r report.Row) bool { return !r.Met })
}

// agentOptions returns how the agents of this run are started, and what ends what they need.
func (b *bench) agentOptions(ctx context.Context) (agentOptions, func() error, error) {
	o := agentOptions{program: b.agent}
	if b.delay == 0 {
		return o, func() error { return nil }, nil
	}
	proxy, err := startSlowProxy(ctx, b.delay)
	if err != nil {
		return o, nil, err
	}
	o.proxy = proxy.url
	return o, proxy.close, nil
}
