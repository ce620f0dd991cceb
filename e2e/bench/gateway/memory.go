// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const (
	// exchanged is what each idle stream carries in each direction before its memory is measured again.
	exchanged = 64 << 10
	// podMemory and podStreams are the limits of a gateway in manifests/gateway.
	podMemory, podStreams = 1 << 30, 20_000
	// withoutStreams is the memory of a gateway without streams.
	withoutStreams = 20 << 20
)

// streams are open streams, which are closed together.
type streams []net.Conn

func (s streams) close() {
	for _, conn := range s {
		if conn != nil {
			conn.Close()
		}
	}
}

// forEach calls do for each stream, for 32 at a time.
func (s streams) forEach(do func(i int) error) error {
	const clients = 32
	return each(clients, func(client int) error {
		for i := client; i < len(s); i += clients {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	})
}

// idleRow measures the memory of open streams that carry nothing: before they have carried anything but a message, and after.
func idleRow(ctx context.Context, b *bench, p *pair) error {
	empty, err := p.memory()
	if err != nil {
		return err
	}
	open := make(streams, b.idle)
	defer open.close()
	err = open.forEach(func(i int) (err error) { open[i], err = p.answered(ctx); return err })
	if err != nil {
		return err
	}
	fresh, err := b.memoryLater(ctx, p)
	if err != nil {
		return err
	}
	err = open.forEach(func(i int) error {
		if err := open[i].SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		var group errgroup.Group
		group.Go(func() error { _, err := open[i].Write(make([]byte, exchanged)); return err })
		group.Go(func() error { _, err := io.ReadFull(open[i], make([]byte, exchanged)); return err })
		return group.Wait()
	})
	if err != nil {
		return err
	}
	used, err := b.memoryLater(ctx, p)
	if err != nil {
		return err
	}
	b.Add("Idle", string(p.kind), "KB/stream", (fresh-empty)/1e3/float64(len(open)))
	b.Add("Idle/after=64KiB", string(p.kind), "KB/stream", (used-empty)/1e3/float64(len(open)))
	b.Add("Idle/after=64KiB", string(p.kind), "times-before", (used-empty)/(fresh-empty))
	return nil
}

// memoryLater returns the memory of a pair when it has released what streams need only while data moves.
func (b *bench) memoryLater(ctx context.Context, p *pair) (float64, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(b.duration):
	}
	return p.memory()
}

// full are two gateways that both export and import.
type full struct {
	processes *pair
	clients   [2]string // the addresses for clients
}

// fullRow measures the largest resident memory of a gateway whose streams are as many as it may have, in both directions, while the readers of
// half of them do not read. More are tried, and refused when the memory for streams is used up. As a process may open fewer files than that needs,
// the limits of streams and of memory are both reduced.
func fullRow(ctx context.Context, b *bench, who pairKind, folder string) error {
	n := min(b.idle/4, b.files/4-200)
	limit := withoutStreams + (podMemory-withoutStreams)*float64(n)/podStreams
	backend, err := b.startBackend(ctx, side{}) // of its own, as its streams end with it
	if err != nil {
		return err
	}
	defer backend.stop()
	two, err := b.startFull(ctx, who, folder, backend.client, n, fmt.Sprintf("GOMEMLIMIT=%d", int(limit))) // as in manifests/gateway
	if err != nil {
		return err
	}
	defer two.processes.stop()
	open := make(streams, 2*n)
	defer open.close()
	refused, err := two.fill(ctx, open)
	if err != nil {
		return err
	}
	peak, err := two.peak(ctx, b.duration)
	if err != nil {
		return err
	}
	answered, asked := 0, 0
	for i, conn := range open {
		if conn != nil && !isStalled(i) && i%16 == 15 { // some of those that carry messages
			asked++
			if echoes(conn) == nil {
				answered++
			}
		}
	}
	b.Add("Full", string(who), "share-of-limit", peak/limit)
	b.Add("Full", string(who), "peak-MB", peak/1e6)
	b.Add("Full", string(who), "refused", float64(refused))
	b.Add("Full", string(who), "share-answered", float64(answered)/float64(asked))
	fmt.Printf("          full: %d streams in each direction, %.0f MB of %.0f MB, %d refused, %d of %d answered\n", n, peak/1e6, limit/1e6, refused, answered, asked)
	return nil
}

// isStalled reports whether a stream is stalled: half of those in each direction.
func isStalled(i int) bool { return i/2%4 < 2 }

// fill opens streams in both directions in turn, and returns how many were not opened.
func (f *full) fill(ctx context.Context, open streams) (refused int, err error) {
	var mu sync.Mutex
	err = open.forEach(func(i int) (err error) {
		p := *f.processes
		p.client, p.from = f.clients[i%2], &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i/2%64))} // one client may have half of the memory
		switch {
		case !isStalled(i):
			open[i], err = p.answered(ctx)
		case i/2%4 == 0: // the client does not read
			open[i], err = p.stalled(ctx, modeSome, nil)
		default: // the backend does not read
			open[i], err = p.stalled(ctx, modeDeaf, make([]byte, someBytes))
		}
		if err != nil {
			mu.Lock()
			refused++
			mu.Unlock()
		}
		return ctx.Err()
	})
	return refused, err
}

// echoes returns nil if a message is answered.
func echoes(conn net.Conn) error {
	message := make([]byte, messageSize)
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := conn.Write(message); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, message)
	return err
}

func (b *bench) startFull(ctx context.Context, who pairKind, folder, backend string, streams int, env string) (*full, error) {
	files, err := writeCertificates(folder)
	if err != nil {
		return nil, err
	}
	two := &full{processes: &pair{kind: who, files: files, sites: &sites{}}}
	var between [2]string
	for i := range between {
		var errs [2]error
		between[i], errs[0] = freeAddress(side{})
		two.clients[i], errs[1] = freeAddress(side{})
		if err := errors.Join(errs[:]...); err != nil {
			return nil, err
		}
	}
	ids := []clusterset.ClusterID{east, west}
	for i, id := range ids {
		c := two.processes.gatewayOf(id, ids[1-i])
		c.Streams, c.HasMemory = streams, true
		c.Export = &exportConfig{Listen: between[i], Backend: backend}
		c.Import = &importConfig{Listen: two.clients[i], Cluster: ids[1-i], Gateways: []string{between[1-i]}}
		if err := two.processes.startRole(ctx, side{}, b.program(who), c, gatewayRole, env); err != nil {
			two.processes.stop()
			return nil, err
		}
	}
	for i := range two.clients {
		ready := *two.processes
		ready.client = two.clients[i]
		if _, err := ready.awaitReady(ctx, nil); err != nil {
			return nil, err
		}
	}
	return two, nil
}

// peak returns the largest resident memory that one of the gateways has had, in bytes.
func (f *full) peak(ctx context.Context, after time.Duration) (float64, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(after):
	}
	var peaks []uint64
	for _, cmd := range f.processes.processes {
		process, err := procfs.NewProc(cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		status, err := process.NewStatus()
		if err != nil {
			return 0, err
		}
		peaks = append(peaks, status.VmHWM)
	}
	return float64(slices.Max(peaks)), nil
}

// stalled opens a stream that carries more than one side reads: of the client, if it sends nothing more, or of the backend.
func (p *pair) stalled(ctx context.Context, mode byte, more []byte) (net.Conn, error) {
	conn, err := p.open(ctx, mode)
	if err != nil {
		return nil, err
	}
	err = errors.Join(conn.(*net.TCPConn).SetReadBuffer(8<<10), conn.SetDeadline(time.Now().Add(patience)))
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, messageSize))
	}
	if err == nil && more != nil {
		go func() { _, _ = conn.Write(more) }() // it ends when the connection is closed
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
