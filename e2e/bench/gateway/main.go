// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command gateway compares a pair of gateways with a pair of HAProxy processes with mutual TLS in TCP mode, with the same
// certificates, the same cipher and the same load on the same machine: make bench-gateway. The gateways run the data path of
// cmd/tombolo-gateway without its API server. They write profiles of their CPU into the folder BENCH_GATEWAY_PROFILES.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
)

type settings struct {
	rounds   int
	duration time.Duration
	rows     string
	who      string
	idle     int
}

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		results.ExitOn("bench-gateway", serveRole(role))
		return
	}
	var s settings
	flag.IntVar(&s.rounds, "rounds", 5, "rounds of each figure, of which the median counts")
	flag.DurationVar(&s.duration, "duration", 2*time.Second, "time of each round of each figure")
	flag.StringVar(&s.rows, "rows", "", "comma-separated rows to measure; defaults to all: "+strings.Join(names(), ", "))
	flag.StringVar(&s.who, "who", "", fmt.Sprintf("comma-separated forwarders to measure; defaults to all: %v", pairKinds))
	flag.IntVar(&s.idle, "idle", 10_000, "number of idle streams whose memory is measured")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	results.ExitOn("bench-gateway", run(ctx, s))
}

type bench struct {
	settings
	results.Results
	backend *pair
}

func run(ctx context.Context, s settings) (err error) {
	if _, err := exec.LookPath("haproxy"); err != nil {
		return fmt.Errorf("%w (Debian: apt-get install haproxy)", err)
	}
	files, err := raiseFileLimit()
	if err != nil {
		return err
	}
	// A process of a pair needs two files for a stream.
	if most := int(files)/2 - 500; s.idle > most {
		fmt.Printf("this system allows %d files for a process, so %d idle streams are measured instead of %d\n", files, most, s.idle)
		s.idle = most
	}
	folder, err := os.MkdirTemp("", "bench-gateway-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	b := &bench{settings: s}
	if b.backend, err = startBackend(ctx, side{}); err != nil {
		return err
	}
	defer b.backend.stop()
	began := time.Now()
	for round := range s.rounds {
		// All processes are new in each round, and what was measured first is measured last in the next one.
		order := slices.Clone(pairKinds)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, kind := range order {
			if s.who != "" && !slices.Contains(strings.Split(s.who, ","), string(kind)) {
				continue
			}
			fmt.Printf("%6.0f s  round %d: %s\n", time.Since(began).Seconds(), round+1, kind)
			if err := b.measure(ctx, folder, kind); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
	}
	b.setTargets()
	const path = "out/bench-gateway.txt"
	fmt.Printf("%6.0f s  the figures are in %s\n\n", time.Since(began).Seconds(), path)
	return errors.Join(b.Write(path), b.WriteTargets(os.Stdout))
}

func (b *bench) measure(ctx context.Context, folder string, kind pairKind) (err error) {
	for _, r := range rows {
		if b.rows != "" && !slices.Contains(strings.Split(b.rows, ","), r.name) || r.skip[kind] {
			continue
		}
		if kind.forwardsAs() != kind && r.name != connectName {
			continue // policies matter to new connections only
		}
		if r.name == farName {
			if err := farRow(ctx, b, kind, folder); err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			continue
		}
		p, err := startPair(ctx, folder, kind, b.backend.client, &sites{})
		if err != nil {
			return err
		}
		err = r.measure(ctx, b, p)
		p.stop()
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

// raiseFileLimit lets this process and its children open as many files as the system allows, and returns how many.
func raiseFileLimit() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	limit.Cur = limit.Max
	return limit.Max, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}
