// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Silence is the time without an acknowledgement after which a peer that was asked is lost.
const Silence = 30 * time.Second

// DialTCP connects to an address, whose host may be a name, and prepares the connection as Prepare does. It connects only to IP addresses
// for which permit returns nil; permit may be nil.
func DialTCP(ctx context.Context, address string, timeout time.Duration, permit func(netip.Addr) error) (*net.TCPConn, error) {
	dialer := net.Dialer{Timeout: timeout, KeepAliveConfig: keepalive}
	if permit != nil {
		dialer.ControlContext = func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(resolved)
			if err != nil {
				return err
			}
			return permit(to.Addr())
		}
	}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// keepalive keeps middleboxes from dropping a connection while it is idle, and has it closed within 40 s if its peer is lost (G6).
var keepalive = net.KeepAliveConfig{Enable: true, Idle: Silence / 3, Interval: Silence / 6, Count: 4}

// Prepare sets keepalive for a connection that was accepted. It closes the connection after an error.
func Prepare(conn *net.TCPConn) error {
	err := conn.SetKeepAliveConfig(keepalive)
	if err != nil {
		conn.Close()
	}
	return err
}

// Detach returns the socket of a connection as a non-blocking descriptor of its own, and closes the connection for Go's network poller, so
// that only one poller watches the socket.
func Detach(conn *net.TCPConn) (int, error) {
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd := -1
	var failed error
	if err := raw.Control(func(old uintptr) { fd, failed = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return -1, err
	}
	return fd, failed
}
