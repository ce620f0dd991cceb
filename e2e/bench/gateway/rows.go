// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
)

// connectName is the name of the row of new connections.
const connectName = "connect"

// row is a group of figures that are measured together.
type row struct {
	name    string
	skip    map[pairKind]bool
	measure func(context.Context, *bench, *pair) error
	// alone is set instead of measure if the row starts pairs itself.
	alone func(context.Context, *bench, pairKind, string) error
}

var (
	onlyDefaults = map[pairKind]bool{largeHAProxy: true}
	onlyPairs    = map[pairKind]bool{largeHAProxy: true, direct: true}
	onlyGateways = map[pairKind]bool{haproxy: true, largeHAProxy: true, direct: true}
)

var rows = []row{
	{name: "bulk-1", measure: func(ctx context.Context, b *bench, p *pair) error { return b.bulk(ctx, p, "Bulk/streams=1", 1) }},
	{name: "bulk-8", measure: func(ctx context.Context, b *bench, p *pair) error { return b.bulk(ctx, p, "Bulk/streams=8", 8) }},
	{name: connectName, skip: onlyDefaults, measure: connectRow},
	{name: "request", skip: onlyDefaults, measure: requestRow},
	{name: "mixed", skip: onlyDefaults, measure: mixedRow},
	{name: "idle", skip: onlyPairs, measure: idleRow},
	{name: "full", skip: onlyGateways, alone: fullRow},
	{name: "far", skip: onlyDefaults, alone: farRow},
	{name: "burst", skip: onlyGateways, alone: burstRow(burstCold, "Burst/pair=cold")},
	{name: "burst-far", skip: onlyGateways, alone: burstRow(burstFar, "Burst/rtt=50ms")},
	{name: "burst-restart", skip: onlyGateways, alone: burstRow(burstRestart, "Burst/pair=restarted")},
	{name: "silent", skip: onlyGateways, measure: silentRow},
	{name: "denied", skip: onlyGateways, alone: deniedRow},
	{name: "dead", skip: onlyGateways, alone: deadRow},
	{name: "ports", skip: onlyGateways, alone: portsRow},
}

func names() []string {
	var result []string
	for _, r := range rows {
		result = append(result, r.name)
	}
	return result
}

// used runs load for the duration of a round, and returns its result, the CPU seconds of the pair and the time that passed.
func used[T any](ctx context.Context, b *bench, p *pair, load func(context.Context) (T, error)) (got T, cpu, seconds float64, err error) {
	before, err := p.cpu()
	if err != nil {
		return got, 0, 0, err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, b.duration)
	defer cancel()
	if got, err = load(ctx); err != nil {
		return got, 0, 0, err
	}
	after, err := p.cpu()
	return got, after - before, time.Since(began).Seconds(), err
}

// bulk measures streams that carry as much as they can.
func (b *bench) bulk(ctx context.Context, p *pair, name string, streams int) error {
	bytes, cpu, seconds, err := used(ctx, b, p, func(ctx context.Context) (int64, error) { return p.download(ctx, streams) })
	if err != nil {
		return err
	}
	b.Add(name, string(p.kind), "MB/s", float64(bytes)/1e6/seconds)
	if cpu > 0 {
		b.Add(name, string(p.kind), "MB/cpu-s", float64(bytes)/1e6/cpu)
	}
	return nil
}

// connectRow measures new connections with one request each, of 32 clients.
func connectRow(ctx context.Context, b *bench, p *pair) error {
	took, cpu, seconds, err := used(ctx, b, p, func(ctx context.Context) ([]time.Duration, error) { return p.connect(ctx, 32) })
	if err != nil {
		return err
	}
	b.Add("Connect", string(p.kind), "connections/s", float64(len(took))/seconds)
	b.latencies("Connect", p, took)
	if cpu > 0 {
		b.Add("Connect", string(p.kind), "cpu-us/connection", cpu*1e6/float64(len(took)))
	}
	return nil
}

// requestRow measures requests on open streams: of one client, and of 50.
func requestRow(ctx context.Context, b *bench, p *pair) error {
	for name, clients := range map[string]int{"Request/clients=1": 1, "Request/clients=50": 50} {
		took, cpu, _, err := used(ctx, b, p, func(ctx context.Context) ([]time.Duration, error) { return p.echo(ctx, clients) })
		if err != nil {
			return err
		}
		b.latencies(name, p, took)
		if cpu > 0 {
			b.Add(name, string(p.kind), "cpu-us/request", cpu*1e6/float64(len(took)))
		}
	}
	return nil
}

// mixedRow measures the requests of one client while four streams carry as much as they can.
func mixedRow(ctx context.Context, b *bench, p *pair) error {
	took, _, _, err := used(ctx, b, p, func(ctx context.Context) (took []time.Duration, err error) {
		var group errgroup.Group
		group.Go(func() error { _, err := p.download(ctx, 4); return err })
		group.Go(func() (err error) { took, err = p.echo(ctx, 1); return err })
		err = group.Wait()
		return took, err
	})
	if err != nil {
		return err
	}
	b.latencies("RequestBesideBulk", p, took)
	return nil
}

// latencies adds figures of latencies, and returns their median in microseconds.
func (b *bench) latencies(name string, p *pair, took []time.Duration) float64 {
	values := make([]float64, len(took))
	for i, d := range took {
		values[i] = float64(d.Microseconds())
	}
	b.Add(name, string(p.kind), "p50-us", results.Quantile(values, 0.5))
	b.Add(name, string(p.kind), "p99-us", results.Quantile(values, 0.99))
	return results.Quantile(values, 0.5)
}

// setTargets sets the targets of the figures; if only some rows are measured, of those that were.
func (b *bench) setTargets() {
	us := string(tombolo)
	measured := func(name, unit, who string) bool { return b.rowList == "" || !math.IsNaN(b.Median(name, who, unit)) }
	limit := func(name, unit string, bound results.Bound) {
		if measured(name, unit, us) {
			b.Limit(name, unit, us, bound)
		}
	}
	compare := func(name, unit string, baseline pairKind, bound results.Bound) {
		if measured(name, unit, us) && measured(name, unit, string(baseline)) {
			b.Compare(name, unit, us, string(baseline), bound)
		}
	}
	for name, more := range map[string]float64{"Bulk/streams=1": 1.15, "Bulk/streams=8": 1.05} {
		compare(name, "MB/cpu-s", haproxy, results.AtLeast(1.4))
		compare(name, "MB/cpu-s", largeHAProxy, results.AtLeast(1.25))
		if b.before != "" {
			compare(name, "MB/cpu-s", before, results.AtLeast(more))
		}
	}
	compare("Connect", "cpu-us/connection", haproxy, results.AtMost(1.0/6))
	compare("Connect", "connections/s", haproxy, results.AtLeast(5))
	for _, kind := range []pairKind{with10, with1000} {
		if measured("Connect", "connections/s", string(kind)) {
			b.Compare("Connect", "connections/s", string(kind), string(withoutPolicies), results.AtLeast(0.97))
		}
	}
	compare("Request/clients=50", "cpu-us/request", haproxy, results.AtMost(0.9))
	compare("Request/clients=50", "p50-us", haproxy, results.AtMost(1))
	compare("Request/clients=50", "p99-us", haproxy, results.AtMost(1))
	compare("Request/clients=1", "cpu-us/request", haproxy, results.AtMost(0.85))
	compare("Request/clients=1", "p50-us", haproxy, results.AtMost(0.85))
	limit("RequestBesideBulk", "p50-us", results.AtMost(1000))
	limit("Idle", "KB/stream", results.AtMost(38))
	limit("Idle/after=64KiB", "times-before", results.AtMost(1.1))
	limit("Full", "share-of-limit", results.AtMost(0.8))
	limit("Full", "share-answered", results.AtLeast(1))
	limit("FirstByte/rtt=50ms", "p50-us", results.AtMost(1.1*float64(roundTrip.Microseconds())))
	compare("Bulk/rtt=50ms", "MB/s", direct, results.AtLeast(0.97))
	for _, name := range []string{"Burst/pair=cold", "Burst/rtt=50ms", "Burst/pair=restarted"} {
		limit(name, "resets", results.AtMost(0))
		limit(name, "times-steady", results.AtMost(3))
	}
	limit("Handshake/member=near", "later-ms", results.AtMost(1000))
	limit("Handshake/member=far", "later-ms", results.AtMost(1000))
	limit("Allowed/beside=denied", "times-alone", results.AtMost(1.5))
	limit("Allowed/beside=denied", "failed", results.AtMost(0))
	limit("FirstByte/dead=unanswered", "later-ms", results.AtMost(300))
	limit("FirstByte/dead=mute", "later-ms", results.AtMost(300))
	limit("Ports", "cpu-ms/change", results.AtMost(5))
}
