// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The probes of a connection on which nothing is sent: they keep middleboxes from dropping it, and have it closed within 40 s if its peer is
// lost (G6).
const (
	keepAliveIdle     = silence / 3
	keepAliveInterval = silence / 6
	keepAliveCount    = 4
)

// Listener accepts connections that no poller watches until they are in a loop.
type Listener struct {
	file *os.File
	raw  syscall.RawConn
	addr net.Addr
}

// Listen listens at a TCP address, a host with a port.
func Listen(ctx context.Context, address string) (*Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer listener.Close() // what it has opened stays open
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &Listener{file: file, raw: raw, addr: listener.Addr()}, nil
}

// Addr returns the address at which it listens.
func (l *Listener) Addr() net.Addr { return l.addr }

// Close ends Accept.
func (l *Listener) Close() error { return l.file.Close() }

// Accepted is a connection that was accepted, before it is in a loop.
type Accepted struct {
	// FD is its non-blocking descriptor.
	FD   int
	Peer netip.AddrPort
}

// Accept waits for the next connection. The error is net.ErrClosed if the listener is closed.
func (l *Listener) Accept() (Accepted, error) {
	var from unix.Sockaddr
	var err error
	fd := -1
	if l.raw.Read(func(listening uintptr) bool {
		for {
			fd, from, err = accept(int(listening))
			if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ECONNABORTED) {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	}) != nil {
		return Accepted{}, net.ErrClosed
	}
	if err != nil {
		return Accepted{}, os.NewSyscallError("accept", err)
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // it fails only if the connection is closed
	return Accepted{FD: fd, Peer: addressOf(from)}, nil
}

// Close closes the connection, which must not be in a loop.
func (a Accepted) Close() { _ = unix.Close(a.FD) }

// Reset closes the connection with a reset. It must not be in a loop.
func (a Accepted) Reset() {
	linger(a.FD)
	a.Close()
}

func linger(fd int) {
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
}

// Connect begins to connect to an address. When the handler is called, Established says what has come of it.
func (l *Loop) Connect(to netip.AddrPort, handler Handler) (*Socket, error) {
	fd, err := connect(to)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", to, err)
	}
	s, err := l.Add(fd, handler)
	if err == nil {
		s.Readable, s.Writable = false, false // the first event says that they are
	}
	return s, err
}

func connect(to netip.AddrPort) (int, error) {
	family, address := sockaddrOf(to)
	fd, err := open(family)
	if err != nil {
		return -1, err
	}
	if err = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err == nil {
		err = unix.Connect(fd, address)
	}
	if err != nil && !errors.Is(err, unix.EINPROGRESS) && !errors.Is(err, unix.EINTR) { // neither ends the attempt (connect(2))
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Established reports whether a socket of Connect is connected. The error says why it never will be.
func (s *Socket) Established() (bool, error) {
	if !s.Writable && !s.Failed && !s.HungUp {
		return false, nil
	}
	code, err := unix.GetsockoptInt(s.FD, unix.SOL_SOCKET, unix.SO_ERROR)
	switch {
	case err != nil:
		return false, err
	case code != 0:
		return false, unix.Errno(code)
	}
	s.Failed = s.Failed && !s.Writable // a SYN that was repeated is no failure
	return s.Writable, nil
}

// keepAlive has the kernel probe the connection while nothing is sent. The loop calls it when a connection has lived for a Period, so that short
// ones do without four system calls.
func (s *Socket) keepAlive() {
	seconds := func(d time.Duration) int { return int(d / time.Second) }
	_ = unix.SetsockoptInt(s.FD, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1) // each fails only if the connection is closed
	_ = unix.SetsockoptInt(s.FD, unix.IPPROTO_TCP, optionIdle, seconds(keepAliveIdle))
	_ = unix.SetsockoptInt(s.FD, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, seconds(keepAliveInterval))
	_ = unix.SetsockoptInt(s.FD, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepAliveCount)
}

func sockaddrOf(a netip.AddrPort) (family int, address unix.Sockaddr) {
	if ip := a.Addr().Unmap(); ip.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port()), Addr: ip.As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

func addressOf(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}
