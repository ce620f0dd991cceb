// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
)

type bench struct {
	settings
	results.Results
	log        func(format string, args ...any)
	content    *content
	kubeconfig string
	servers    []*server
}

// The plugins, as figures name them.
const clusterset, kubernetes, constant = "clusterset", "kubernetes", "constant"

type compared struct{ clusterset, kubernetes, constant *server }

func (c compared) all() []*server { return []*server{c.constant, c.kubernetes, c.clusterset} }

func (b *bench) stop() error {
	var failures error
	for _, s := range b.servers {
		failures = errors.Join(failures, s.stop())
	}
	return failures
}

// start starts the servers, with another plugin before theirs if it is given.
func (b *bench) start(ctx context.Context, another string) (c compared, err error) {
	start := func(name, plugin string) *server {
		if err != nil {
			return nil
		}
		var s *server
		profile := ""
		if name == clusterset && another == "" {
			profile = b.cpuProfile
		}
		if s, err = startServer(ctx, name, another+"\n"+plugin, profile); err == nil {
			b.servers = append(b.servers, s)
		}
		return s
	}
	c.clusterset = start(clusterset, "clusterset clusterset.local {\nkubeconfig "+b.kubeconfig+"\nstartup_timeout 1m\n}")
	c.kubernetes = start(kubernetes, "kubernetes clusterset.local {\nkubeconfig "+b.kubeconfig+"\nmulticluster clusterset.local\nstartup_timeout 1m\n}")
	if err == nil {
		names := strings.Join([]string{fqdn(clusterIPName(0)), fqdn(headlessName(0)), fqdn(absentName(0))}, " ")
		c.constant = start(constant, "constant "+c.clusterset.tcp+" "+names)
	}
	return c, err
}

// questions returns those of the benchmark: three for services with an address, the others for headless ones.
func (c *content) questions() []*question {
	small, large, twice := results.AtLeast(0.95), results.AtLeast(0.9), results.AtLeast(2)
	clusterIPs, headless, absent := names(clusterIPName, c.clusterIPs), names(headlessName, c.headless), names(absentName, c.clusterIPs)
	return []*question{
		{name: "A/of=ClusterSetIP", kind: "A", names: clusterIPs, records: 1, outstanding: 200, toConstant: &small},
		{name: "SRV/of=ClusterSetIP", kind: "SRV", names: clusterIPs, records: 1, outstanding: 200, toConstant: &small},
		{name: "A/of=NXDOMAIN", kind: "A", names: absent, code: dns.RcodeNameError, outstanding: 200, toConstant: &small},
		{name: "A/of=100-endpoints/over=TCP", kind: "A", names: headless, records: perSlice, tcp: true, outstanding: 100, toConstant: &large, toKubernetes: &twice},
		{name: "A/of=100-endpoints/over=UDP-EDNS", kind: "A", names: headless, records: perSlice, edns: true, outstanding: 100, toConstant: &large, toKubernetes: &twice},
	}
}

func names(name func(int) string, n int) (result []string) {
	for i := range n {
		result = append(result, fqdn(name(i)))
	}
	return result
}

func (b *bench) run(ctx context.Context) error {
	questions := b.content.questions()
	uncached, err := b.start(ctx, "")
	if err != nil {
		return err
	}
	cached, err := b.start(ctx, "cache")
	if err != nil {
		return err
	}
	for _, s := range append(uncached.all(), cached.all()...) {
		for _, q := range questions {
			if err := q.check(ctx, s); err != nil {
				return err
			}
		}
	}
	for _, q := range questions {
		if err := b.rates(ctx, q, uncached, ""); err != nil {
			return err
		}
		if q.toConstant != nil {
			b.Compare(q.name, rateUnit, clusterset, constant, *q.toConstant)
		}
		if q.toKubernetes != nil {
			b.Compare(q.name, rateUnit, clusterset, kubernetes, *q.toKubernetes)
		}
	}
	for _, q := range questions {
		if err := b.rates(ctx, q, cached, "/cache=yes"); err != nil {
			return err
		}
	}
	if err := b.latencies(ctx, questions[0], uncached); err != nil {
		return err
	}
	return b.memory(ctx, uncached)
}

// rateUnit is the unit of rates: on a machine with other load, a second of time says little.
const rateUnit = "answers/cpu-s"

// rates measures how many answers a question gets, one server after the other in each round.
func (b *bench) rates(ctx context.Context, q *question, c compared, suffix string) error {
	b.log("%s%s: %d rounds of %s", q.name, suffix, b.rounds, b.duration)
	for range b.rounds {
		for _, s := range c.all() {
			rate, err := dnsperf(ctx, q, s, b.duration)
			if err != nil {
				return err
			}
			b.Add(q.name+suffix, s.name, rateUnit, rate)
		}
	}
	return nil
}

const updateRate = 100

// latencies measures latencies at a steady rate that no server is busy with, while no slices change and while they do. The
// constant plugin, which reads no slices, shows the effect of the API server's load on the same machine.
func (b *bench) latencies(ctx context.Context, q *question, c compared) error {
	idle, updates := q.name+"/updates=0", fmt.Sprintf("%s/updates=%d", q.name, updateRate)
	measure := func(name string) error {
		for _, s := range c.all() {
			microseconds, err := steady(ctx, q, s, 2*b.duration)
			if err != nil {
				return err
			}
			b.Add(name, s.name, "p50-us", results.Quantile(microseconds, 0.5))
			b.Add(name, s.name, "p99-us", results.Quantile(microseconds, 0.99))
		}
		return nil
	}
	// The API server stays on the clients' core, so that its work delays neither questions nor answers.
	if err := moveTo(ctx, serverCore); err != nil {
		return err
	}
	b.log("latencies at %d questions per second, without and with %d updates of slices per second: %d rounds of %s", steadyRate, updateRate, b.rounds, 4*b.duration)
	for range b.rounds {
		if err := measure(idle); err != nil {
			return err
		}
		stop := b.content.startUpdates(ctx)
		err := measure(updates)
		if err := errors.Join(err, stop()); err != nil {
			return err
		}
	}
	b.Compare(idle, "p50-us", clusterset, kubernetes, results.AtMost(1.1))
	b.Compare(idle, "p99-us", clusterset, kubernetes, results.AtMost(1.1))
	b.Add(updates, clusterset, "p99-growth", b.Median(updates, clusterset, "p99-us")/b.Median(idle, clusterset, "p99-us"))
	b.Limit(updates, "p99-growth", clusterset, results.AtMost(1.5))
	return moveTo(ctx, clientCore)
}

// moveTo pins this process to a core. Processes that it has started stay where they are.
func moveTo(ctx context.Context, core string) error {
	output, err := exec.CommandContext(ctx, "taskset", "-a", "-p", "-c", core, strconv.Itoa(os.Getpid())).CombinedOutput()
	if err != nil {
		return fmt.Errorf("taskset: %w\n%s", err, output)
	}
	return nil
}

// memory measures the memory per endpoint above that of CoreDNS with the constant plugin.
func (b *bench) memory(ctx context.Context, c compared) error {
	b.log("memory with %d endpoints", mostEndpoints)
	if err := b.content.createMore(ctx); err != nil {
		return err
	}
	base, err := c.constant.memory()
	if err != nil {
		return err
	}
	for _, s := range []*server{c.kubernetes, c.clusterset} {
		if err := b.content.await(ctx, s); err != nil {
			return err
		}
		bytes, err := s.memory()
		if err != nil {
			return err
		}
		b.Add("Memory", s.name, "KB/endpoint", (bytes-base)/1000/mostEndpoints)
	}
	b.Limit("Memory", "KB/endpoint", clusterset, results.AtMost(0.3))
	b.Compare("Memory", "KB/endpoint", clusterset, kubernetes, results.AtMost(0.5))
	return nil
}
