// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
)

// bench is a run.
type bench struct {
	settings
	say        func(format string, args ...any)
	content    *content
	folder     string
	kubeconfig string
	servers    []*server
	rows       []report.Row
	profiles   []string // of what has missed its target
}

// The three that are compared.
const ceilingName = "ceiling"

// contenders are CoreDNS with our plugin, with its own, and with the ceiling.
type contenders struct{ ours, own, ceiling *server }

func (c contenders) each() []*server { return []*server{c.ours, c.own, c.ceiling} }

func (s *server) isCeiling() bool { return strings.HasPrefix(s.name, ceilingName) }

func (b *bench) stop() error {
	var failures []error
	for _, s := range b.servers {
		failures = append(failures, s.stop())
	}
	return errors.Join(failures...)
}

func (b *bench) start(ctx context.Context, name, plugins string) (*server, error) {
	s, err := start(ctx, name, plugins)
	if err == nil {
		b.servers = append(b.servers, s)
	}
	return s, err
}

// startAll starts the three, with more plugins before theirs.
func (b *bench) startAll(ctx context.Context, more string) (c contenders, err error) {
	if c.ours, err = b.start(ctx, "clusterset"+more, more+"\nclusterset clusterset.local {\nkubeconfig "+b.kubeconfig+"\nstartup_timeout 1m\n}"); err != nil {
		return c, err
	}
	own := more + "\nkubernetes clusterset.local {\nkubeconfig " + b.kubeconfig + "\nmulticluster clusterset.local\nstartup_timeout 1m\n}"
	if c.own, err = b.start(ctx, "kubernetes"+more, own); err != nil {
		return c, err
	}
	names := strings.Join([]string{fqdn(clusterIPName(0)), fqdn(headlessName(0)), fqdn(absentName(0))}, " ")
	c.ceiling, err = b.start(ctx, ceilingName+more, more+"\nceiling "+c.ours.tcp+" "+names)
	return c, err
}

// scenarios are what is asked by dnsperf: the first three of the services with an address, the others of headless ones.
func scenarios(n size) []*scenario {
	small, large, twice := report.AtLeast(0.95), report.AtLeast(0.9), report.AtLeast(2)
	clusterIPs, headless, absent := names(clusterIPName, n.clusterIPs), names(headlessName, n.headless), names(absentName, n.clusterIPs)
	return []*scenario{
		{name: "A of a ClusterSetIP", kind: "A", names: clusterIPs, records: 1, underway: 200, toCeiling: small},
		{name: "SRV of a ClusterSetIP", kind: "SRV", names: clusterIPs, records: 1, underway: 200, toCeiling: small},
		{name: "NXDOMAIN", kind: "A", names: absent, code: dns.RcodeNameError, underway: 200, toCeiling: small},
		{name: "A of 100 endpoints, TCP", kind: "A", names: headless, records: perSlice, tcp: true, underway: 100, toCeiling: large, toOwn: twice},
		{name: "A of 100 endpoints, UDP with EDNS", kind: "A", names: headless, records: perSlice, edns: true, underway: 100, toCeiling: large, toOwn: twice},
	}
}

// largest is what dnsperf cannot ask.
func largest(n size) *scenario {
	return &scenario{name: "SRV of 100 endpoints, TCP (client of our own)", kind: "SRV", names: names(headlessName, n.headless), records: perSlice, tcp: true}
}

func names(name func(int) string, n int) (result []string) {
	for i := range n {
		result = append(result, fqdn(name(i)))
	}
	return result
}

func (b *bench) run(ctx context.Context) error {
	asked, large := scenarios(b.content.size), largest(b.content.size)
	off, err := b.startAll(ctx, "")
	if err != nil {
		return err
	}
	on, err := b.startAll(ctx, "cache")
	if err != nil {
		return err
	}
	if err := warmUp(ctx, append(slices.Clone(asked), large), off, on); err != nil {
		return err
	}
	for _, s := range asked {
		if err := s.write(b.folder); err != nil {
			return err
		}
	}
	if err := b.rates(ctx, asked, off, ""); err != nil {
		return err
	}
	if err := b.checkCeiling(); err != nil {
		return err
	}
	if err := b.compare(ctx, large, off, pipelined, ""); err != nil {
		return err
	}
	for _, part := range []func() error{
		func() error { return b.rates(ctx, asked, on, ", with cache") },
		func() error { return b.latency(ctx, asked[0], off) },
		func() error { return b.updates(ctx, asked[0], off) },
		func() error { return b.memory(ctx, off) },
		func() error { return b.allocations(ctx) },
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// warmUp has all servers answer all questions once.
func warmUp(ctx context.Context, asked []*scenario, all ...contenders) error {
	for _, c := range all {
		for _, at := range c.each() {
			for _, s := range asked {
				if err := s.warmUp(ctx, at); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// rates measures how many answers there are of each kind.
func (b *bench) rates(ctx context.Context, asked []*scenario, c contenders, suffix string) error {
	for _, s := range asked {
		if err := b.compare(ctx, s, c, measure, suffix); err != nil {
			return err
		}
	}
	return nil
}

type meter func(context.Context, *scenario, *server, time.Duration) (float64, error)

// compare measures one kind of question, one contender after the other in each round. Targets hold without the cache.
func (b *bench) compare(ctx context.Context, s *scenario, c contenders, m meter, suffix string) error {
	b.say("%s%s: %d rounds of %s", s.name, suffix, b.rounds, b.duration)
	rates := map[*server][]float64{}
	for range b.rounds {
		for _, at := range c.each() {
			r, err := m(ctx, s, at, b.duration)
			if err != nil {
				return err
			}
			rates[at] = append(rates[at], r)
		}
	}
	toCeiling, toOwn := s.toCeiling, s.toOwn
	if suffix != "" {
		toCeiling, toOwn = nil, nil
	}
	rows := []report.Row{
		report.Compare(s.name+suffix+", answers a CPU second, to the ceiling", rates[c.ours], rates[c.ceiling], toCeiling),
		report.Compare(s.name+suffix+", answers a CPU second, to CoreDNS' own", rates[c.ours], rates[c.own], toOwn),
	}
	b.rows = append(b.rows, rows...)
	for _, row := range rows {
		if !row.Met {
			return b.explain(ctx, s, c, m)
		}
	}
	return nil
}

// explain writes down where the CPU of our server and of the ceiling goes while they are asked what missed its target.
func (b *bench) explain(ctx context.Context, s *scenario, c contenders, m meter) error {
	for _, at := range []*server{c.ours, c.ceiling} {
		base := filepath.Join(filepath.Dir(b.out), "bench-dns "+s.name+" "+at.name)
		path := strings.ReplaceAll(strings.ReplaceAll(base, " ", "-"), ",", "") + ".pprof"
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if _, err := at.order(profileCommand + " " + path); err != nil {
			return err
		}
		if _, err := m(ctx, s, at, 2*b.duration); err != nil {
			return err
		}
		if _, err := at.order(endCommand); err != nil {
			return err
		}
		b.profiles = append(b.profiles, path)
	}
	return nil
}

// checkCeiling says whether the machine could show anything.
func (b *bench) checkCeiling() error {
	reached := b.rows[0].Reference / floorOfCeiling
	if reached >= leastOfFloor {
		return nil
	}
	text := fmt.Sprintf("the ceiling is %.0f answers a CPU second, %.0f%% of the %d that a core that nobody shares has reached", b.rows[0].Reference, 100*reached, floorOfCeiling)
	if !b.anyhow {
		return errors.New("a broken run: " + text + "; -any-machine goes on all the same (make bench-dns BENCHFLAGS=-any-machine)")
	}
	b.say("note: %s", text)
	return nil
}

// allocationsLine is what a Go benchmark says.
var allocationsLine = regexp.MustCompile(`(?m)^BenchmarkServeDNS/(\S+)\s.*\s(\d+) allocs/op`)

// allocations takes the most that any question needs in the plugin, from its Go benchmark.
func (b *bench) allocations(ctx context.Context) error {
	b.say("allocations in the plugin")
	output, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkServeDNS$", "-benchtime", "2000x", "./coredns-plugin/clusterset").CombinedOutput()
	if err != nil {
		return fmt.Errorf("go test -bench: %w\n%s", err, output)
	}
	most := -1.0
	for _, line := range allocationsLine.FindAllSubmatch(output, -1) {
		n, err := strconv.ParseFloat(string(line[2]), 64)
		if err != nil {
			return err
		}
		most = max(most, n)
	}
	if most < 0 {
		return fmt.Errorf("the Go benchmark says nothing of allocations:\n%s", output)
	}
	b.rows = append(b.rows, report.Compare("allocations of a query in the plugin, to 1", []float64{most}, []float64{1}, report.AtMost(8)))
	return nil
}
