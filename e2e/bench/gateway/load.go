// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// messageSize is the size of a request and of its answer.
const messageSize = 64

// The first byte of a connection says what the backend does.
const (
	modeEcho     = 'E' // sends back each message
	modeDownload = 'D' // sends without end
	modeSome     = 'S' // sends someBytes, and then nothing
	modeDeaf     = 'N' // answers the first message, and then reads nothing
)

// someBytes are more than a gateway keeps of a stream whose reader does not read, and few enough for the kernel's buffers of all streams.
const someBytes = 192 << 10

// serveBackend is what the pairs forward to.
func serveBackend(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go serve(conn)
	}
}

func serve(conn net.Conn) {
	defer conn.Close()
	message := make([]byte, messageSize)
	if _, err := io.ReadFull(conn, message); err != nil {
		return
	}
	if message[0] == modeDownload {
		chunk := make([]byte, 256<<10)
		for {
			if _, err := conn.Write(chunk); err != nil {
				return
			}
		}
	}
	if message[0] == modeSome || message[0] == modeDeaf {
		if message[0] == modeSome {
			message = make([]byte, someBytes)
		}
		_, _ = conn.Write(message)
		select {} // until the process ends
	}
	for {
		if _, err := conn.Write(message); err != nil {
			return
		}
		if _, err := io.ReadFull(conn, message); err != nil {
			return
		}
	}
}

// open connects and sends the first message.
func (p *pair) open(ctx context.Context, mode byte) (conn net.Conn, err error) {
	err = p.sites.near.within(func() (err error) {
		dialer := net.Dialer{LocalAddr: p.from}
		conn, err = dialer.DialContext(ctx, "tcp", p.client)
		return err
	})
	if err != nil {
		return nil, err
	}
	message := make([]byte, messageSize)
	message[0] = mode
	if _, err := conn.Write(message); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// request opens a connection, awaits one answer and closes it. It returns how long that took.
func (p *pair) request(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	conn, err := p.open(ctx, modeEcho)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	_, err = io.ReadFull(conn, make([]byte, messageSize))
	return time.Since(began), err
}

// download reads from so many streams until ctx ends, and returns the number of bytes.
func (p *pair) download(ctx context.Context, streams int) (int64, error) {
	counts := make([]int64, streams)
	err := each(streams, func(i int) error {
		conn, err := p.open(ctx, modeDownload)
		if err != nil {
			return err
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		chunk := make([]byte, 256<<10)
		for {
			n, err := conn.Read(chunk)
			counts[i] += int64(n)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	total := int64(0)
	for _, n := range counts {
		total += n
	}
	return total, err
}

// connect opens connection after connection with so many clients until ctx ends, and returns how long each took.
func (p *pair) connect(ctx context.Context, clients int) ([]time.Duration, error) {
	return repeat(clients, func() ([]time.Duration, error) {
		var all []time.Duration
		for ctx.Err() == nil {
			took, err := p.request(context.WithoutCancel(ctx))
			if err != nil {
				return nil, err
			}
			all = append(all, took)
		}
		return all, nil
	})
}

// echo sends message after message on one stream of each of so many clients until ctx ends, and returns how long each answer took.
func (p *pair) echo(ctx context.Context, clients int) ([]time.Duration, error) {
	return repeat(clients, func() ([]time.Duration, error) {
		conn, err := p.open(ctx, modeEcho)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		message := make([]byte, messageSize)
		var all []time.Duration
		if _, err := io.ReadFull(conn, message); err != nil { // of the first message
			return nil, err
		}
		for ctx.Err() == nil {
			began := time.Now()
			if _, err := conn.Write(message); err != nil {
				return nil, err
			}
			if _, err := io.ReadFull(conn, message); err != nil {
				return nil, err
			}
			all = append(all, time.Since(began))
		}
		return all, nil
	})
}

func repeat(clients int, run func() ([]time.Duration, error)) ([]time.Duration, error) {
	results := make([][]time.Duration, clients)
	err := each(clients, func(i int) (err error) {
		results[i], err = run()
		return err
	})
	return slices.Concat(results...), err
}

func each(n int, run func(i int) error) error {
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { errs[i] = run(i) })
	}
	group.Wait()
	return errors.Join(errs...)
}
