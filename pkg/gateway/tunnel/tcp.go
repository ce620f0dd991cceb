// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// silence is the time after which a connection whose peer acknowledges nothing is closed.
const silence = 30 * time.Second

// DialTCP connects to an address, whose host may be a name, and prepares the connection as Prepare does. It connects only to IP addresses
// for which permit returns nil; permit may be nil.
func DialTCP(ctx context.Context, address string, timeout time.Duration, permit func(netip.Addr) error) (*net.TCPConn, error) {
	dialer := net.Dialer{Timeout: timeout}
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
	tcp := conn.(*net.TCPConn)
	return tcp, Prepare(tcp)
}

// Prepare sets keepalive and user timeout of a TCP connection, so that the loss of its peer is found within 30 s, and middleboxes do not
// drop it while it is idle (G6).
func Prepare(conn *net.TCPConn) error {
	keepalive := net.KeepAliveConfig{Enable: true, Idle: silence / 2, Interval: silence / 6, Count: 3}
	if err := conn.SetKeepAliveConfig(keepalive); err != nil {
		conn.Close()
		return err
	}
	if err := setUserTimeout(conn, silence); err != nil {
		conn.Close()
		return err
	}
	return nil
}
