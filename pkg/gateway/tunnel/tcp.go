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

// silence is the time without an acknowledgement after which a peer that was asked is lost.
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

// Prepare sets keepalive, so that middleboxes do not drop the connection while it is idle (G6), and has it closed within 40 s if its peer
// is lost, or within minutes if that was not reading before: the kernel sends probes of a closed window up to two minutes apart. A peer that
// does not read is not lost.
func Prepare(conn *net.TCPConn) error {
	keepalive := net.KeepAliveConfig{Enable: true, Idle: silence / 3, Interval: silence / 6, Count: 4}
	err := conn.SetKeepAliveConfig(keepalive)
	if err == nil {
		err = closeIfLost(conn, silence)
	}
	if err != nil {
		conn.Close()
	}
	return err
}
