// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	steadyClients = 32
	// patience is how long a client of a burst, or of a dead address, waits for its answer.
	patience = 25 * time.Second
)

// burstKind is what has happened before a burst.
type burstKind int

const (
	burstCold    burstKind = iota // the pair has just started
	burstFar                      // the same, over a path with a delay
	burstRestart                  // the exporting gateway was killed and started again
)

// burstRow measures clients that connect at once, beside as many that connect one after the other.
func burstRow(kind burstKind, name string) func(context.Context, *bench, pairKind, string) error {
	return func(ctx context.Context, b *bench, who pairKind, folder string) error {
		at, backend := &sites{}, b.backend
		if kind == burstFar {
			if os.Geteuid() != 0 {
				fmt.Println("          a burst over a path with a delay needs root, and is left out")
				return nil
			}
			var err error
			if at, err = newSites(ctx); err != nil {
				return err
			}
			defer at.close()
			if backend, err = b.startBackend(ctx, at.far); err != nil {
				return err
			}
			defer backend.stop()
		}
		steady, err := b.burst(ctx, who, folder, backend, at, kind, steadyClients)
		if err != nil {
			return err
		}
		once, err := b.burst(ctx, who, folder, backend, at, kind, b.burstSize)
		if err != nil {
			return err
		}
		b.Add(name, string(who), "resets", float64(once.failed))
		b.Add(name, string(who), "s", once.took.Seconds())
		b.Add(name, string(who), "s-steady", steady.took.Seconds())
		b.Add(name, string(who), "times-steady", once.took.Seconds()/steady.took.Seconds())
		fmt.Printf("          %s: %d of %d reset, %.1f s, steady %d reset, %.1f s: %v\n", name, once.failed, b.burstSize, once.took.Seconds(),
			steady.failed, steady.took.Seconds(), once.why)
		return nil
	}
}

// burstResult is what has become of the clients of a burst: when the last one was answered or has failed, how many have failed, and why one has.
type burstResult struct {
	took   time.Duration
	failed int
	why    error
}

// burst starts a pair, and opens streams, so many at a time. Each stays open until all are answered.
func (b *bench) burst(ctx context.Context, who pairKind, folder string, backend *pair, at *sites, kind burstKind, atOnce int) (burstResult, error) {
	p, err := b.startPair(ctx, folder, who, backend.client, at, pairOptions{})
	if err != nil {
		return burstResult{}, err
	}
	defer p.stop()
	if kind == burstRestart {
		if _, err := p.connectFor(ctx, b.duration, steadyClients); err != nil { // idle connections, which will be lost
			return burstResult{}, err
		}
		if err := p.killExporter(ctx); err != nil {
			return burstResult{}, err
		}
	}
	var (
		mu     sync.Mutex
		result burstResult
		conns  streams
	)
	defer func() { conns.close() }()
	began := time.Now()
	_ = each(atOnce, func(client int) error {
		for i := client; i < b.burstSize; i += atOnce {
			conn, err := p.answered(ctx)
			mu.Lock()
			if err != nil {
				result.failed, result.why = result.failed+1, err
			} else {
				conns = append(conns, conn)
			}
			mu.Unlock()
		}
		return nil
	})
	result.took = time.Since(began)
	return result, nil
}

// answered opens a stream, and returns it after its first answer.
func (p *pair) answered(ctx context.Context) (net.Conn, error) {
	conn, err := p.open(ctx, modeEcho)
	if err != nil {
		return nil, err
	}
	err = conn.SetReadDeadline(time.Now().Add(patience))
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, messageSize))
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func (p *pair) connectFor(ctx context.Context, d time.Duration, clients int) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return p.connect(ctx, clients)
}

// killExporter kills the exporting gateway, starts it again, and returns when it listens.
func (p *pair) killExporter(ctx context.Context) error {
	killed := p.processes[0]
	if err := killed.Process.Kill(); err != nil {
		return err
	}
	_ = killed.Wait()
	p.processes, p.errors = p.processes[1:], p.errors[1:]
	if err := p.restart(); err != nil {
		return err
	}
	return p.awaitAccepting(ctx, p.sites.far, p.between)
}
