// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"io"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
)

// farName is the name of the row with a delay, which starts a pair at other places, and connectName that of new connections.
const farName, connectName = "far", "connect"

// row is a group of figures that are measured together.
type row struct {
	name    string
	skip    map[pairKind]bool
	measure func(context.Context, *bench, *pair) error
}

var (
	onlyDefaults = map[pairKind]bool{largeHAProxy: true}
	onlyPairs    = map[pairKind]bool{largeHAProxy: true, direct: true}
)

var rows = []row{
	{"bulk-1", nil, func(ctx context.Context, b *bench, p *pair) error { return b.bulk(ctx, p, "Bulk/streams=1", 1) }},
	{"bulk-8", nil, func(ctx context.Context, b *bench, p *pair) error { return b.bulk(ctx, p, "Bulk/streams=8", 8) }},
	{connectName, onlyDefaults, connectRow},
	{"request", onlyDefaults, requestRow},
	{"mixed", onlyDefaults, mixedRow},
	{"idle", onlyPairs, idleRow},
	{farName, onlyDefaults, nil},
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

// idleRow measures the memory of open streams that carry nothing.
func idleRow(ctx context.Context, b *bench, p *pair) error {
	before, err := p.memory()
	if err != nil {
		return err
	}
	conns := make([]net.Conn, b.idle)
	defer func() {
		for _, conn := range conns {
			if conn != nil {
				conn.Close()
			}
		}
	}()
	const clients = 32
	err = each(clients, func(client int) error {
		for i := client; i < len(conns); i += clients {
			conn, err := p.open(ctx, modeEcho)
			if err != nil {
				return err
			}
			conns[i] = conn
			if _, err := io.ReadFull(conn, make([]byte, messageSize)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	select { // what the streams need only while data moves is released meanwhile
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(b.duration):
	}
	after, err := p.memory()
	if err != nil {
		return err
	}
	b.Add("Idle", string(p.kind), "KB/stream", (after-before)/1e3/float64(len(conns)))
	return nil
}

func (b *bench) latencies(name string, p *pair, took []time.Duration) {
	values := make([]float64, len(took))
	for i, d := range took {
		values[i] = float64(d.Microseconds())
	}
	b.Add(name, string(p.kind), "p50-us", results.Quantile(values, 0.5))
	b.Add(name, string(p.kind), "p99-us", results.Quantile(values, 0.99))
}

func (b *bench) setTargets() {
	us := string(tombolo)
	for _, name := range []string{"Bulk/streams=1", "Bulk/streams=8"} {
		b.Compare(name, "MB/cpu-s", us, string(haproxy), results.AtLeast(1.4))
		b.Compare(name, "MB/cpu-s", us, string(largeHAProxy), results.AtLeast(1.25))
	}
	b.Compare("Connect", "cpu-us/connection", us, string(haproxy), results.AtMost(1.0/6))
	b.Compare("Connect", "connections/s", us, string(haproxy), results.AtLeast(5))
	for _, kind := range []pairKind{with10, with1000} {
		b.Compare("Connect", "connections/s", string(kind), string(withoutPolicies), results.AtLeast(0.97))
	}
	b.Compare("Request/clients=50", "cpu-us/request", us, string(haproxy), results.AtMost(1))
	b.Compare("Request/clients=50", "p50-us", us, string(haproxy), results.AtMost(1))
	b.Compare("Request/clients=50", "p99-us", us, string(haproxy), results.AtMost(1))
	b.Compare("Request/clients=1", "p50-us", us, string(haproxy), results.AtMost(1))
	b.Limit("RequestBesideBulk", "p50-us", us, results.AtMost(1000))
	b.Limit("Idle", "KB/stream", us, results.AtMost(40))
	b.Limit("FirstByte/rtt=50ms", "p50-us", us, results.AtMost(1.1*float64(roundTrip.Microseconds())))
	b.Compare("Bulk/rtt=50ms", "MB/s", us, string(direct), results.AtLeast(0.97))
}
