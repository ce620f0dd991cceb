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

	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

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

// listenTCP listens on a port of all addresses of the host, in each IP family that it has.
func listenTCP(ctx context.Context, port int) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", ":"+strconv.Itoa(port))
}

// datagrams is a UDP socket that answers from the address to which a datagram was sent. Without that, it would answer from the one
// that the route suggests, and the peer would not take that for an answer where the host has several, as a pod with the host's
// network has.
type datagrams struct{ *net.UDPConn }

// listenUDP is listenTCP for UDP.
func listenUDP(ctx context.Context, port int) (datagrams, error) {
	conn, err := new(net.ListenConfig).ListenPacket(ctx, "udp", ":"+strconv.Itoa(port))
	if err != nil {
		return datagrams{}, err
	}
	// A host may lack one family, and its socket the option of that family.
	err6 := ipv6.NewPacketConn(conn).SetControlMessage(ipv6.FlagDst, true)
	err4 := ipv4.NewPacketConn(conn).SetControlMessage(ipv4.FlagDst, true)
	if err6 != nil && err4 != nil {
		return datagrams{}, errors.Join(err6, err4, conn.Close())
	}
	return datagrams{conn.(*net.UDPConn)}, nil
}

// answerEach answers each datagram, until the socket is closed. An answer that cannot be sent concerns one peer: it is only reported.
func (d datagrams) answerEach(report io.Writer, answer func(content []byte, peer string) ([]byte, error)) error {
	buffer := make([]byte, maxDatagram)
	for {
		n, session, err := dns.ReadFromSessionUDP(d.UDPConn, buffer)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("udp %s: %w", d.LocalAddr(), err)
		}
		content, err := answer(buffer[:n], session.RemoteAddr().String())
		if err != nil {
			return err
		}
		if _, err := dns.WriteToSessionUDP(d.UDPConn, content, session); err != nil {
			fmt.Fprintf(report, "probe: udp %s: answer %s: %v\n", d.LocalAddr(), session.RemoteAddr(), err)
		}
	}
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
