// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// A peer is lost if it acknowledges nothing for a time, though it was asked more than once.
//
// spec: G6
func TestIsLost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sinceAck            time.Duration
		retransmits, probes int
		want                bool
	}{
		"idle":                                        {time.Hour, 0, 0, false},
		"bytes were retransmitted, for a moment":      {silence - 1, 3, 0, false},
		"bytes were retransmitted for long":           {silence, 3, 0, true},
		"a probe was sent after a long pause":         {time.Hour, 0, 1, false},
		"probes of a closed window are not answered":  {silence, 0, 2, true},
		"probes of a closed window were answered now": {time.Second, 0, 0, false},
	} {
		check.Equal(t, name, test.want, isLost(test.sinceAck, silence, test.retransmits, test.probes))
	}
}

// writer fills a connection, and says what its loop sees then.
type writer struct {
	after time.Duration
	begin time.Time
	seen  chan bool // whether the peer is lost, at the end
}

func (w *writer) Ready(s *Socket) {
	for s.Writable {
		if _, err := s.Write(make([]byte, 1<<20)); err != nil {
			w.seen <- true
			return
		}
	}
}

func (w *writer) Sweep(s *Socket, now time.Time) {
	if s.isLost(w.after) || now.Sub(w.begin) > 20*w.after {
		w.seen <- s.isLost(w.after)
		s.Close()
	}
}

// connected returns the descriptor of a connection, and its peer.
func connected(t *testing.T) (fd int, peer *net.TCPConn) {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check.Must(t, err)
	defer listener.Close()
	conn, err := net.DialTCP("tcp", nil, listener.Addr().(*net.TCPAddr))
	check.Must(t, err)
	peer, err = listener.AcceptTCP()
	check.Must(t, err)
	t.Cleanup(func() { peer.Close() })
	raw, err := conn.SyscallConn()
	check.Must(t, err)
	check.Must(t, raw.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }))
	check.Must(t, err)
	conn.Close()
	return fd, peer
}

// A connection whose peer does not read is not lost, however long that takes.
//
// spec: G6, G12
func TestPeerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("gateways run on Linux")
	}
	fd, _ := connected(t)
	var loops Group
	l, err := loops.Next()
	check.Must(t, err)
	w := &writer{after: 100 * time.Millisecond, begin: time.Now(), seen: make(chan bool, 2)}
	l.Do(func() {
		s, err := l.Add(fd, w)
		if err != nil {
			w.seen <- true
			return
		}
		w.Ready(s)
	})
	check.Equal(t, "the peer is lost", false, <-w.seen)
}

// counter counts the calls of Ready.
type counter struct{ ready int }

func (c *counter) Ready(*Socket)            { c.ready++ }
func (c *counter) Sweep(*Socket, time.Time) {}

// After Close, a socket reads and writes nothing, although its descriptor is that of another socket; and the handler of a socket that is
// closed, or taken out of the loop, is not called again.
//
// spec: G6
func TestClosedSocket(t *testing.T) {
	t.Parallel()
	var loops Group
	l, err := loops.Next()
	check.Must(t, err)
	for name, end := range map[string]func(*Socket){"closed": (*Socket).Close, "taken out": (*Socket).Remove} {
		fd, _ := connected(t)
		c, written, failed, done := &counter{}, -1, error(nil), make(chan struct{})
		l.Do(func() {
			s, err := l.Add(fd, c)
			if err != nil {
				close(done)
				return
			}
			s.Again()
			end(s)
			if s.closed {
				written, _ = s.Write([]byte("x"))
				_, failed = s.Read(make([]byte, 1))
			} else {
				written, failed = 0, net.ErrClosed
			}
			c.ready = 0
			l.Do(func() { l.Do(func() { s.Close(); close(done) }) }) // after the next round
		})
		<-done
		check.Equal(t, name+": bytes written", 0, written)
		check.Equal(t, name+": error", net.ErrClosed, failed)
		check.Equal(t, name+": calls of the handler", 0, c.ready)
	}
}

// established notes what has come of an attempt to connect.
type established struct {
	after func(*Socket) // what has happened to the socket
	seen  chan string
}

func (e *established) Ready(s *Socket) {
	e.after(s)
	is, err := s.Established()
	switch {
	case err != nil:
		e.seen <- err.Error()
	case is:
		e.seen <- fmt.Sprintf("connected, failed %t", s.Failed)
	}
}

func (e *established) Sweep(*Socket, time.Time) {}

// An attempt ends with a connection or with an error. That its SYN was repeated, which looks like a lost peer, is neither.
//
// spec: G3
func TestConnect(t *testing.T) {
	t.Parallel()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check.Must(t, err)
	defer listener.Close()
	to := listener.Addr().(*net.TCPAddr).AddrPort()
	own, err := net.DialTCP("tcp", nil, listener.Addr().(*net.TCPAddr)) // no program listens at its address
	check.Must(t, err)
	defer own.Close()
	for name, test := range map[string]struct {
		to    netip.AddrPort
		after func(*Socket)
		want  string
	}{
		"it accepts":             {to, func(*Socket) {}, "connected, failed false"},
		"after its SYN was lost": {to, func(s *Socket) { s.Failed = true }, "connected, failed false"},
		"it refuses":             {own.LocalAddr().(*net.TCPAddr).AddrPort(), func(*Socket) {}, "connection refused"},
	} {
		e := &established{after: test.after, seen: make(chan string, 8)}
		var loops Group
		l, err := loops.Next()
		check.Must(t, err)
		l.Do(func() {
			if _, err := l.Connect(test.to, e); err != nil {
				e.seen <- errors.Unwrap(err).Error()
			}
		})
		check.Equal(t, name, test.want, <-e.seen)
	}
}
