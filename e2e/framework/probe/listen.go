// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// families are the two of IP, by which package net calls them.
var families = []string{"4", "6"}

// bindAttempts bounds the search for a port that is free in both families.
const bindAttempts = 20

// parsePorts returns the ports of a list such as 8080,81; none for "". Port 0 is any that is free.
func parsePorts(flag, list string) ([]int, error) {
	if list == "" {
		return nil, nil
	}
	var ports []int
	for text := range strings.SplitSeq(list, ",") {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port != 0 && slices.Contains(ports, int(port)) {
			return nil, usageError{fmt.Sprintf("probe: -%s=%s: must be different ports, as in 8080,81", flag, list)}
		}
		ports = append(ports, int(port))
	}
	return ports, nil
}

// bindEach opens the port in every family that the host has, which must be one at least. There is one socket for each
// family: a socket of both would know IPv4 peers by mapped addresses, and be refused by a host without IPv6.
func bindEach[S io.Closer](ctx context.Context, port int, open func(ctx context.Context, family, address string) (S, int, error)) ([]S, int, error) {
	var err error
	for range bindAttempts {
		var sockets []S
		var bound int
		sockets, bound, err = bindOnce(ctx, port, open)
		// A port that the first family was given may be taken in the second.
		if err == nil || port != 0 || !errors.Is(err, syscall.EADDRINUSE) {
			return sockets, bound, err
		}
	}
	return nil, 0, err
}

func bindOnce[S io.Closer](ctx context.Context, port int, open func(ctx context.Context, family, address string) (S, int, error)) ([]S, int, error) {
	var sockets []S
	bound := port
	var missing []error
	for _, family := range families {
		host := map[string]string{"4": "0.0.0.0", "6": "::"}[family]
		socket, got, err := open(ctx, family, net.JoinHostPort(host, strconv.Itoa(bound)))
		switch {
		case err == nil:
			sockets, bound = append(sockets, socket), got
		case isMissingFamily(err):
			missing = append(missing, err)
		default:
			return nil, 0, errors.Join(err, closeAll(sockets))
		}
	}
	if len(sockets) == 0 {
		return nil, 0, errors.Join(missing...)
	}
	return sockets, bound, nil
}

// isMissingFamily reports whether a host lacks a family, or all addresses of it.
func isMissingFamily(err error) bool {
	return errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EPROTONOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

func closeAll[S io.Closer](sockets []S) error {
	var errs []error
	for _, s := range sockets {
		if err := s.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func openTCP(ctx context.Context, family, address string) (net.Listener, int, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp"+family, address)
	if err != nil {
		return nil, 0, err
	}
	return listener, portOf(listener.Addr()), nil
}

// portOf returns the port of an address of TCP or UDP.
func portOf(address net.Addr) int {
	switch a := address.(type) {
	case *net.TCPAddr:
		return a.Port
	case *net.UDPAddr:
		return a.Port
	default:
		return 0
	}
}
