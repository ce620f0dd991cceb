// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command dns compares the CoreDNS plugin clusterset with CoreDNS' own, kubernetes, and with a plugin that returns constant
// answers of the same size: make bench-dns. Servers run on one core, clients on the other.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

type settings struct {
	rounds     int
	duration   time.Duration
	cpuProfile string
}

func main() {
	if corefile, isServer := os.LookupEnv(corefileVariable); isServer {
		results.ExitOn("bench-dns", serve(corefile))
		return
	}
	var s settings
	flag.IntVar(&s.rounds, "rounds", 5, "rounds of each figure, of which the median counts")
	flag.DurationVar(&s.duration, "duration", 2*time.Second, "time of each round of each figure, in whole seconds")
	flag.StringVar(&s.cpuProfile, "cpuprofile", "", "file for a profile of the CPU of the server with clusterset")
	flag.Parse()
	lab.Quiet()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	results.ExitOn("bench-dns", run(ctx, s))
}

func run(ctx context.Context, s settings) (err error) {
	for _, program := range []string{"dnsperf", "taskset"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w (Debian: apt-get install dnsperf util-linux)", err)
		}
	}
	began := time.Now()
	log := func(format string, args ...any) {
		fmt.Printf("%6.0f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	log("start an API server")
	l, err := lab.New(ctx, lab.Options{Clusters: []lab.ClusterOptions{lab.Member("a")}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	c, err := newContent(ctx, l.Cluster("a"), 1000, 50)
	if err != nil {
		return err
	}
	log("create %d ClusterSetIP services and %d headless ones with %d endpoints", c.clusterIPs, c.headless, perSlice)
	if err := c.create(ctx); err != nil {
		return err
	}
	b := &bench{settings: s, log: log, content: c, kubeconfig: l.Cluster("a").Kubeconfig()}
	defer func() { err = errors.Join(err, b.stop()) }()
	if err := b.run(ctx); err != nil {
		return err
	}
	const path = "out/bench-dns.txt"
	log("the figures are in %s\n", path)
	return errors.Join(b.Write(path), b.WriteTargets(os.Stdout))
}
