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
	"github.com/tombolo-mcs/tombolo/e2e/lab"
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
}

// sayer tells a person what happens.
type sayer func(format string, args ...any)

// bench is the run of one part.
type bench struct {
	settings
	say  sayer
	rows []report.Row
}

// part is one of the benchmarks.
type part struct {
	name string
	size int // the full one
	// rounds of each figure.
	rounds int
	run    func(context.Context, *bench) error
}

func parts() []part {
	return []part{
		{"propagation", 2000, 5, propagation},
		{"latency", 300, 5, latency},
		{"fanout", 16, 5, fanout},
		{"restart", 10_000, 1, restart},
	}
}

func main() {
	var s settings
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
	all := parts()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("there is no part %q", name)
		}
	}
	for _, p := range all {
		if len(names) > 0 && !slices.Contains(names, p.name) {
			continue
		}
		if err := p.measure(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// measure runs a part and writes its table. Where a target is missed that is told, and is no error.
func (p part) measure(ctx context.Context, s settings) error {
	began := time.Now()
	b := &bench{settings: s, say: func(format string, args ...any) {
		fmt.Fprintf(os.Stdout, "%6.1f s  %s: %s\n", time.Since(began).Seconds(), p.name, fmt.Sprintf(format, args...))
	}}
	if b.size == 0 {
		b.size = p.size
	}
	if b.rounds == 0 {
		b.rounds = p.rounds
	}
	if err := p.run(ctx, b); err != nil {
		if cause := ctx.Err(); cause != nil {
			return errors.New("interrupted")
		}
		return err
	}
	var table strings.Builder
	if err := report.Markdown(&table, b.rows); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "\n%s\n", table.String())
	path := filepath.Join(s.out, "bench-"+p.name)
	if err := report.WriteJSON(path+".json", b.rows); err != nil {
		return err
	}
	return os.WriteFile(path+".md", []byte(table.String()), 0o644) //nolint:gosec // figures are for all to read
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
