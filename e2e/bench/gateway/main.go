// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command gateway compares a pair of gateways with a pair of HAProxy processes with mutual TLS in TCP mode, with the same
// certificates, the same cipher and the same load on the same machine: make bench-gateway. The gateways run the data path of
// cmd/tombolo-gateway without its API server. They write profiles of their CPU into the folder BENCH_GATEWAY_PROFILES.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

type settings struct {
	rounds   int
	duration time.Duration
	rowList  string
	who      string
	idle     int
	// burstSize is the number of clients of a burst, and ports that of listening ports.
	burstSize, ports int
	// before and programs are the folders of the programs of an earlier commit, and of this one.
	before, programs string
}

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		results.ExitOn("bench-gateway", serveRole(role))
		return
	}
	var s settings
	flag.IntVar(&s.rounds, "rounds", 5, "rounds of each figure, of which the median counts")
	flag.DurationVar(&s.duration, "duration", 2*time.Second, "time of each round of each figure")
	flag.StringVar(&s.rowList, "rows", "", "comma-separated regular expressions of the rows to measure; defaults to all: "+strings.Join(names(), ", "))
	flag.StringVar(&s.who, "who", "", fmt.Sprintf("comma-separated forwarders to measure; defaults to all: %v", pairKinds))
	flag.IntVar(&s.idle, "idle", 10_000, "number of idle streams whose memory is measured")
	flag.IntVar(&s.burstSize, "burst", 3000, "number of clients that connect at once")
	flag.IntVar(&s.ports, "ports", 20_000, "number of listening ports of which one changes")
	flag.StringVar(&s.before, "before", "", "folder with the programs gateway and tombolo-gateway of an earlier commit, which are measured beside this one")
	flag.StringVar(&s.programs, "programs", "bin", "folder of the program tombolo-gateway of this commit")
	flag.Parse()
	lab.Quiet()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	results.ExitOn("bench-gateway", run(ctx, s))
}

type bench struct {
	settings
	results.Results
	backend *pair
	self    string         // this program
	files   int            // that a process may open
	rows    *regexp.Regexp // to measure
	cluster *portsCluster  // nil before the row of the ports
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
	b := &bench{settings: s, files: int(files)}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	// Each element of the list matches a whole name.
	if b.rows, err = regexp.Compile("^(" + strings.ReplaceAll(cmp.Or(s.rowList, ".*"), ",", "|") + ")$"); err != nil {
		return err
	}
	if !slices.ContainsFunc(names(), b.rows.MatchString) {
		return fmt.Errorf("-rows %s: there are %v", s.rowList, names())
	}
	defer func() { err = errors.Join(err, b.cluster.close()) }()
	if b.backend, err = b.startBackend(ctx, side{}); err != nil {
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
			if s.who != "" && !slices.Contains(strings.Split(s.who, ","), string(kind)) || kind == before && s.before == "" {
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
		if !b.rows.MatchString(r.name) || r.skip[kind] {
			continue
		}
		if kind.forwardsAs() != kind && r.name != connectName {
			continue // policies matter to new connections only
		}
		if r.alone != nil {
			err = r.alone(ctx, b, kind, folder)
		} else {
			err = b.measurePair(ctx, folder, kind, r)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

func (b *bench) measurePair(ctx context.Context, folder string, kind pairKind, r row) error {
	p, err := b.startPair(ctx, folder, kind, b.backend.client, &sites{}, pairOptions{})
	if err != nil {
		return err
	}
	defer p.stop()
	return r.measure(ctx, b, p)
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
