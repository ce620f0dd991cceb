// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command dns measures the CoreDNS plugin clusterset against CoreDNS' own and against a plugin that hands out constant
// answers of the same size (the ceiling): make bench-dns. One core serves, the other asks.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// floorOfCeiling is what a constant answer has been seen to reach in a second of a core, and leastOfFloor the share of it
// that a run must reach to say anything.
const floorOfCeiling, leastOfFloor = 94_000, 0.8

// settings are the flags.
type settings struct {
	rounds   int
	duration time.Duration
	out      string
	anyhow   bool
}

func main() {
	if corefile, isServer := os.LookupEnv(corefileVariable); isServer {
		exitOn(serve(corefile))
		return
	}
	var s settings
	flag.IntVar(&s.rounds, "rounds", 5, "rounds of each figure, of which the median counts")
	flag.DurationVar(&s.duration, "duration", 2*time.Second, "how long each round of each figure takes; whole seconds")
	flag.StringVar(&s.out, "out", "out/bench-dns.json", "where to write the figures")
	flag.BoolVar(&s.anyhow, "any-machine", false, "go on although the ceiling is far below what has been seen: the ratios say less then")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exitOn(run(ctx, s))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-dns:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) (err error) {
	if err := needPrograms(ctx); err != nil {
		return err
	}
	began := time.Now()
	say := func(format string, args ...any) {
		fmt.Printf("%6.0f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	say("an API server starts")
	l, err := lab.New(ctx, lab.Options{Clusters: []lab.ClusterOptions{lab.Member("a")}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	data, err := newContent(ctx, l.Cluster("a"), full)
	if err != nil {
		return err
	}
	say("%d ClusterSetIP and %d headless services of %d endpoints are written", data.clusterIPs, data.headless, perSlice)
	if err := data.fill(ctx); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "tombolo-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	b := &bench{settings: s, say: say, content: data, folder: folder, kubeconfig: l.Cluster("a").Kubeconfig()}
	defer func() { err = errors.Join(err, b.stop()) }()
	if err := b.run(ctx); err != nil {
		return err
	}
	fmt.Println()
	if err := report.Markdown(os.Stdout, b.rows); err != nil {
		return err
	}
	for _, path := range b.profiles {
		top, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-cum", "-nodecount=45", path).Output()
		if err != nil {
			return fmt.Errorf("go tool pprof %s: %w", path, err)
		}
		fmt.Printf("\nWhere the CPU goes in %s:\n%s", path, top)
	}
	return report.WriteJSON(s.out, b.rows)
}

func mustJSON(v any) []byte {
	content, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps and API types always can be
	}
	return content
}
