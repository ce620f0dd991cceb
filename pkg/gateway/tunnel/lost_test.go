// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"errors"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/check"
)

// TestIsLost: a peer is lost if it acknowledges nothing for a time, though it was asked more than once.
//
// spec: G6
func TestIsLost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		info tcpInfo
		want bool
	}{
		"idle":                                        {tcpInfo{sinceAck: time.Hour}, false},
		"bytes were retransmitted, for a moment":      {tcpInfo{retransmits: 3, sinceAck: silence - 1}, false},
		"bytes were retransmitted for long":           {tcpInfo{retransmits: 3, sinceAck: silence}, true},
		"a probe was sent after a long pause":         {tcpInfo{probes: 1, sinceAck: time.Hour}, false},
		"probes of a closed window are not answered":  {tcpInfo{probes: 2, sinceAck: silence}, true},
		"probes of a closed window were answered now": {tcpInfo{sinceAck: time.Second}, false},
	} {
		check.Equal(t, name, test.want, test.info.isLost(silence))
	}
}

// TestPeerThatDoesNotRead: a connection whose peer does not read is not closed, however long that takes.
//
// spec: G6, G12
func TestPeerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("gateways run on Linux")
	}
	const after = 100 * time.Millisecond
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check.Must(t, err)
	defer listener.Close()
	conn, err := net.DialTCP("tcp", nil, listener.Addr().(*net.TCPAddr))
	check.Must(t, err)
	defer conn.Close()
	peer, err := listener.AcceptTCP()
	check.Must(t, err)
	defer peer.Close()
	check.Must(t, errors.Join(closeIfLost(conn, after), conn.SetWriteDeadline(time.Now().Add(20*after))))
	for err == nil {
		_, err = conn.Write(make([]byte, 1<<20))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a write to a peer that does not read: %v, want to wait", err)
	}
}
