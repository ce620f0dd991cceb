// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"net"
	"time"
)

// tcpInfo is a part of the kernel's state of a connection (TCP_INFO).
type tcpInfo struct {
	// retransmits counts the retransmissions since the last acknowledgement, and probes the probes of a closed window or of an idle
	// connection since then.
	retransmits, probes int
	// sinceAck is the time since the last acknowledgement.
	sinceAck time.Duration
}

// isLost reports whether the peer of a connection is lost: nothing has come from it for a time, though it was asked more than once. A peer
// that does not read acknowledges the probes of its closed window, so it is not lost, however long that takes (RFC 9293, section 3.8.6.1).
// TCP_USER_TIMEOUT would close its connection.
func (i tcpInfo) isLost(after time.Duration) bool {
	return i.sinceAck >= after && (i.retransmits > 0 || i.probes > 1)
}

// closeIfLost closes a connection if its peer is lost. It looks three times in the given time, until the connection is closed.
func closeIfLost(conn *net.TCPConn, after time.Duration) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	time.AfterFunc(after/3, func() {
		info, err := readTCPInfo(raw)
		switch {
		case err != nil: // closed
		case info.isLost(after):
			conn.Close()
		default:
			_ = closeIfLost(conn, after)
		}
	})
	return nil
}
