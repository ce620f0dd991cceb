// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
)

// deadRow measures the first byte of the first clients of a pair if one of two addresses does not serve, beside one address.
func deadRow(ctx context.Context, b *bench, who pairKind, folder string) error {
	unanswered, closeUnanswered, err := unansweredAddress()
	if err != nil {
		return err
	}
	defer closeUnanswered()
	mute, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and the program never does
	if err != nil {
		return err
	}
	defer mute.Close()
	alone, err := b.firstBytes(ctx, who, folder, nil)
	if err != nil {
		return err
	}
	b.Add("FirstByte/dead=none", string(who), "slowest-ms", alone)
	for _, dead := range []struct{ name, address string }{{"unanswered", unanswered}, {"mute", mute.Addr().String()}} {
		slowest := 0.0
		for _, order := range []func(string) []string{
			func(live string) []string { return []string{dead.address, live} },
			func(live string) []string { return []string{live, dead.address} },
		} {
			took, err := b.firstBytes(ctx, who, folder, order)
			if err != nil {
				return err
			}
			slowest = max(slowest, took)
		}
		b.Add("FirstByte/dead="+dead.name, string(who), "later-ms", slowest-alone)
	}
	return nil
}

// firstBytes returns the time, in milliseconds, after which the last of eight clients of a pair that has just started has its answer; that of
// patience if it gets none.
func (b *bench) firstBytes(ctx context.Context, who pairKind, folder string, gateways func(string) []string) (float64, error) {
	p, err := b.startCold(ctx, folder, who, b.backend.client, &sites{}, pairOptions{gateways: gateways})
	if err != nil {
		return 0, err
	}
	defer p.stop()
	if err := p.awaitAccepting(ctx, side{}, p.client); err != nil {
		return 0, err
	}
	took, open := make([]float64, 8), make(streams, 8) // all stay open, so that each needs a connection
	defer open.close()
	_ = each(len(took), func(i int) (err error) {
		began := time.Now()
		open[i], err = p.answered(ctx)
		took[i] = time.Since(began).Seconds() * 1e3
		if err != nil {
			took[i] = patience.Seconds() * 1e3
		}
		return err
	})
	return results.Quantile(took, 1), nil
}

// unansweredAddress returns an address at which the kernel drops each SYN, because the queue of a listener is full.
func unansweredAddress() (address string, closeAll func(), err error) {
	listener, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, err
	}
	sockets := []int{listener}
	closeAll = func() {
		for _, fd := range sockets {
			_ = syscall.Close(fd)
		}
	}
	defer func() {
		if err != nil {
			closeAll()
		}
	}()
	local := netip.MustParseAddr("127.0.0.1")
	if err := errors.Join(syscall.Bind(listener, &syscall.SockaddrInet4{Addr: local.As4()}), syscall.Listen(listener, 0)); err != nil {
		return "", nil, err
	}
	bound, err := syscall.Getsockname(listener)
	if err != nil {
		return "", nil, err
	}
	to := netip.AddrPortFrom(local, uint16(bound.(*syscall.SockaddrInet4).Port))
	for range 4 {
		fd, err := connectTo(to)
		if err != nil {
			return "", nil, err
		}
		sockets = append(sockets, fd)
	}
	return to.String(), closeAll, nil
}
