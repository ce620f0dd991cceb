// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// maxDatagram is more than any question or answer of probe has.
const maxDatagram = 2048

// maxEcho is how much of a datagram an answer repeats, in bytes.
const maxEcho = 64

// datagrams is a UDP socket of one family that knows to which address a datagram was sent. A socket that listens on all
// addresses of a host would answer from the one that the route suggests, and the peer would not take that for an answer
// where the host has several, as a pod with the host's network has.
type datagrams interface {
	// receive returns the datagram's length, the address that it was sent to, and the sender's.
	receive(buffer []byte) (int, net.IP, net.Addr, error)
	send(content []byte, from net.IP, to net.Addr) error
	Close() error
}

type datagrams4 struct{ *ipv4.PacketConn }

func (d datagrams4) receive(buffer []byte) (int, net.IP, net.Addr, error) {
	n, info, peer, err := d.ReadFrom(buffer)
	if err != nil || info == nil {
		return n, nil, peer, err
	}
	return n, info.Dst, peer, nil
}

func (d datagrams4) send(content []byte, from net.IP, to net.Addr) error {
	_, err := d.WriteTo(content, &ipv4.ControlMessage{Src: from}, to)
	return err
}

type datagrams6 struct{ *ipv6.PacketConn }

func (d datagrams6) receive(buffer []byte) (int, net.IP, net.Addr, error) {
	n, info, peer, err := d.ReadFrom(buffer)
	if err != nil || info == nil {
		return n, nil, peer, err
	}
	return n, info.Dst, peer, nil
}

func (d datagrams6) send(content []byte, from net.IP, to net.Addr) error {
	_, err := d.WriteTo(content, &ipv6.ControlMessage{Src: from}, to)
	return err
}

func openUDP(ctx context.Context, family, address string) (datagrams, int, error) {
	var config net.ListenConfig
	conn, err := config.ListenPacket(ctx, "udp"+family, address)
	if err != nil {
		return nil, 0, err
	}
	port := portOf(conn.LocalAddr())
	if family == "4" {
		socket := ipv4.NewPacketConn(conn)
		err = socket.SetControlMessage(ipv4.FlagDst, true)
		if err == nil {
			return datagrams4{socket}, port, nil
		}
	} else {
		socket := ipv6.NewPacketConn(conn)
		err = socket.SetControlMessage(ipv6.FlagDst, true)
		if err == nil {
			return datagrams6{socket}, port, nil
		}
	}
	return nil, 0, errors.Join(fmt.Errorf("udp%s: ask for the destination of datagrams: %w", family, err), conn.Close())
}

// echo answers the datagrams of a socket until it is closed. An answer that cannot be sent concerns one peer, so it is only
// told.
func (s *server) echo(socket datagrams, port int) error {
	buffer := make([]byte, maxDatagram)
	for {
		n, destination, peer, err := socket.receive(buffer)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("udp port %d: %w", port, err)
		}
		a := s.answer(port, peer.String())
		a.Echo = string(buffer[:min(n, maxEcho)])
		content, err := json.Marshal(a)
		if err != nil {
			return err
		}
		if err := socket.send(append(content, '\n'), destination, peer); err != nil {
			fmt.Fprintf(s.world.err, "probe: udp port %d: answer %s from %s: %v\n", port, peer, destination, err)
		}
	}
}
