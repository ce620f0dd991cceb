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

// DialTCP connects to an address, whose host may be a name. It connects only to IP addresses for which permit returns nil; permit may be nil.
// Keepalive is set by a loop.
func DialTCP(ctx context.Context, address string, timeout time.Duration, permit func(netip.Addr) error) (*net.TCPConn, error) {
	dialer := net.Dialer{Timeout: timeout, KeepAlive: -1}
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

// detach returns the socket of a connection as a non-blocking descriptor of its own, and closes the connection for Go's network poller, so
// that only one poller watches the socket.
func detach(conn *net.TCPConn) (int, error) {
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
