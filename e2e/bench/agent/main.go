// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command agent measures how fast agents are, and how many requests they send to the API servers, against a bare client
// that makes only the necessary writes and watches (the baseline): make bench. Both work on the same real API servers,
// one after the other in each round, with the same credentials, under the hub's quota and policies.
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
	"syscall"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/bench/agent/world"
	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

type settings struct {
	size, rounds int
	program      string
	cpuProfile   bool
	heapProfile  bool
	// services and rate are the services and the changes per second of the part members.
	services int
	rate     float64
	// stores is the number of members, in the part members, that store what they read.
	stores int
}

// bench is the run of one part.
type bench struct {
	settings
	results.Results
	log world.LogFunc
}

// outFolder has the figures, as bench-<part>.txt, and profiles.
const outFolder = "out"

// who is measured.
const agent, baseline = "agent", "baseline"

// part is one of the benchmarks, with its default size and number of rounds.
type part struct {
	name         string
	size, rounds int
	members      int // clusters; asSize: as many as the size
	run          func(context.Context, *bench, *world.World) error
}

const asSize = -1

var parts = []part{
	{"latency", 100, 2, 2, latency},
	{"fanout", 16, 3, asSize, fanout},
	{"restart", 5000, 1, 2, restart},
	{"reconnect", 100, 1, 0, reconnect},
	{"members", membersSize, 1, 0, members},
	{"scale", 3000, 1, 1, scale},
	{"propagation", 400, 3, 2, propagation},
	{"networks", 200, 2, 2, overGateways},
	{"policy", 500, 5, 2, withPolicy},
}

func main() {
	var s settings
	flag.IntVar(&s.size, "size", 0, "size, in the part's own unit; 0: the default")
	flag.IntVar(&s.rounds, "rounds", 0, "rounds of each figure, of which the median counts; 0: the part's own number")
	flag.StringVar(&s.program, "agent", "", "path of tombolo-agent (default bin/tombolo-agent of this repository)")
	flag.BoolVar(&s.cpuProfile, "cpuprofile", false, "in propagation and scale, write profiles of the agents' CPU to bench-agent-*.pprof")
	flag.BoolVar(&s.heapProfile, "heapprofile", false, "in scale, write a profile of the agent's heap to bench-agent-heap.pprof")
	flag.IntVar(&s.services, "services", membersServices, "in members, the number of services")
	flag.Float64Var(&s.rate, "rate", membersRate, "in members, the changes of endpoints per second")
	flag.IntVar(&s.stores, "stores", membersStores, "in members, how many of them decode and store what they read; the others only read")
	flag.Parse()
	lab.Quiet()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	results.ExitOn("bench", run(ctx, s, flag.Arg(0)))
}

// run runs the part of this name, writes its figures and prints its targets. A missed target is no error.
func run(ctx context.Context, s settings, name string) (err error) {
	i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
	if i < 0 {
		return fmt.Errorf("there is no part %q", name)
	}
	p := parts[i]
	if s.program == "" {
		root, err := lab.Root()
		if err != nil {
			return err
		}
		s.program = filepath.Join(root, "bin", "tombolo-agent")
	}
	if _, err := os.Stat(s.program); err != nil {
		return fmt.Errorf("%w: run \"make bench\"", err)
	}
	b := p.newBench(s)
	members := p.members
	if members == asSize {
		members = b.size
	}
	w, err := world.New(ctx, members, b.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Lab.Close()) }()
	if err := p.run(ctx, b, w); err != nil {
		return err
	}
	path := filepath.Join(outFolder, "bench-"+p.name+".txt")
	b.log("the figures are in %s\n", path)
	return errors.Join(b.Write(path), b.WriteTargets(os.Stdout))
}

func (p part) newBench(s settings) *bench {
	began := time.Now()
	b := &bench{settings: s, log: func(format string, args ...any) {
		fmt.Printf("%6.1f s  %s: %s\n", time.Since(began).Seconds(), p.name, fmt.Sprintf(format, args...))
	}}
	if b.size == 0 {
		b.size = p.size
	}
	if b.rounds == 0 {
		b.rounds = p.rounds
	}
	return b
}
