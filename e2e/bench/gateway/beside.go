// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

// handshakePatience is how long a member tries a handshake.
const handshakePatience = 5 * time.Second

// silentRow measures handshakes of a member beside connections that send nothing, all from one address: on this machine, and as if the member
// were at the end of a path with a delay.
func silentRow(ctx context.Context, b *bench, p *pair) error {
	paths := []struct {
		name      string
		roundTrip time.Duration
	}{{"near", 0}, {"far", roundTrip}}
	alone := map[string]handshakes{}
	for _, path := range paths {
		alone[path.name] = p.handshakes(ctx, path.roundTrip)
	}
	stop, err := b.startCrowd(ctx, crowd{To: netip.MustParseAddrPort(p.between), PerSecond: 10_000, Silent: true})
	if err != nil {
		return err
	}
	for _, path := range paths {
		beside := p.handshakes(ctx, path.roundTrip)
		name := "Handshake/member=" + path.name
		b.Add(name, string(p.kind), "slowest-ms-alone", alone[path.name].slowest())
		b.Add(name, string(p.kind), "later-ms", beside.slowest()-alone[path.name].slowest())
		b.Add(name, string(p.kind), "failed-attempts", float64(beside.failed))
		fmt.Printf("          %s: %d attempts beside silent connections have failed, the slowest of %d members needs %.0f ms, alone %.0f ms\n", name, beside.failed,
			len(beside.took), beside.slowest(), alone[path.name].slowest())
	}
	rate, err := stop()
	b.Add("Silent", string(p.kind), "connections/s", rate)
	return err
}

// handshakes are how long members needed for a handshake, with the attempts that have failed. Without success that is handshakePatience.
type handshakes struct {
	took   []float64 // milliseconds
	failed int
}

func (h handshakes) slowest() float64 { return slices.Max(h.took) }

// handshakes has eight members complete one handshake after the other.
func (p *pair) handshakes(ctx context.Context, roundTrip time.Duration) (result handshakes) {
	var mu sync.Mutex
	_ = each(8, func(int) error {
		for range 3 {
			took, failed := p.handshakeAtLast(ctx, roundTrip)
			mu.Lock()
			result.took, result.failed = append(result.took, took.Seconds()*1e3), result.failed+failed
			mu.Unlock()
		}
		return nil
	})
	return result
}

// handshakeAtLast repeats a handshake until it succeeds, and returns how long that took and how many attempts have failed.
func (p *pair) handshakeAtLast(ctx context.Context, roundTrip time.Duration) (took time.Duration, failed int) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, handshakePatience)
	defer cancel()
	for ctx.Err() == nil && p.handshake(ctx, roundTrip) != nil {
		failed++
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	return time.Since(began), failed
}

// handshake connects to the exporting gateway as another one does, until both have sent HELLO.
func (p *pair) handshake(ctx context.Context, roundTrip time.Duration) error {
	trust, err := p.gatewayOf(east, west).trust()
	if err != nil {
		return err
	}
	time.Sleep(roundTrip)
	tcp, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.between)
	if err != nil {
		return err
	}
	defer tcp.Close()
	defer context.AfterFunc(ctx, func() { tcp.Close() })()
	conn := tls.Client(distant{tcp, roundTrip}, trust.Client(west))
	hello := wire.Append(nil, wire.TypeHello, 0, wire.Hello{Oldest: 1, Newest: wire.Version}.Encode())
	if _, err := conn.Write(hello); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, hello)
	return err
}

// distant is a connection whose peer waits for a round trip between what it sends and what it gets for that.
type distant struct {
	net.Conn
	roundTrip time.Duration
}

func (d distant) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	time.Sleep(d.roundTrip)
	return n, err
}

// deniedRow measures new connections of a client that is allowed, beside clients that are denied.
func deniedRow(ctx context.Context, b *bench, who pairKind, folder string) error {
	p, err := b.startPair(ctx, folder, who, b.backend.client, &sites{}, pairOptions{denies: true})
	if err != nil {
		return err
	}
	defer p.stop()
	alone, failedAlone := p.allowed(ctx, b.duration)
	stop, err := b.startCrowd(ctx, crowd{To: netip.MustParseAddrPort(p.denied), PerSecond: 1000})
	if err != nil {
		return err
	}
	beside, failed := p.allowed(ctx, b.duration)
	rate, err := stop()
	if err != nil {
		return err
	}
	b.Add("Allowed/beside=nothing", string(who), "failed", float64(failedAlone))
	b.Add("Allowed/beside=denied", string(who), "failed", float64(failed))
	ratio := b.latencies("Allowed/beside=denied", p, beside) / b.latencies("Allowed/beside=nothing", p, alone)
	b.Add("Allowed/beside=denied", string(who), "times-alone", ratio)
	b.Add("Allowed/beside=denied", string(who), "denied/s", rate)
	return nil
}

// allowed opens one connection after the other with one client, and returns how long each took until it was answered or failed, and how many
// have failed.
func (p *pair) allowed(ctx context.Context, d time.Duration) (took []time.Duration, failed int) {
	for began := time.Now(); time.Since(began) < d && ctx.Err() == nil; {
		before := time.Now()
		if _, err := p.request(ctx); err != nil {
			failed++
		}
		took = append(took, time.Since(before))
	}
	return took, failed
}
