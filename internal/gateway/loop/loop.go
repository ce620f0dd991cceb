// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loop calls handlers when sockets are ready. Each loop is one goroutine: what belongs to a socket of a loop is used only there, so
// it needs no lock. docs/decisions/017-streams-of-gateways.md says why it is not a library's.
package loop

import (
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Period is the time between two calls of Sweep. Timeouts are that coarse.
const Period = 250 * time.Millisecond

// silence is the time without an acknowledgement after which a peer that was asked is lost (G6), and rounds the number of calls of Sweep in
// which each socket is asked once for it.
const (
	silence = 30 * time.Second
	rounds  = 40
)

// Handler is what a socket belongs to. Its methods are called by the socket's loop.
type Handler interface {
	// Ready is called after an event of a socket.
	Ready(*Socket)
	// Sweep is called about once in a Period with the time.
	Sweep(s *Socket, now time.Time)
}

// Loop waits for the events of its sockets, and calls their handlers.
type Loop struct {
	poller  poller
	sockets map[int32]*Socket
	now     time.Time
	// again are the sockets whose handlers have stopped, so that others get their turn.
	again []*Socket
	round int

	mu     sync.Mutex
	queue  []func()
	asleep bool
}

// Group is a number of loops, one for each two processors that Go uses. They start when the first one is needed, and never end. The zero value
// is ready for use.
type Group struct {
	once sync.Once
	all  []*Loop
	err  error
	next atomic.Uint32
}

// Next returns one of the loops in turn.
func (g *Group) Next() (*Loop, error) {
	g.once.Do(func() {
		for range max(1, runtime.GOMAXPROCS(0)/2) {
			l, err := start()
			if err != nil {
				g.err = fmt.Errorf("starting an event loop: %w", err)
				return
			}
			g.all = append(g.all, l)
		}
	})
	if g.err != nil {
		return nil, g.err
	}
	return g.all[int(g.next.Add(1))%len(g.all)], nil
}

func start() (*Loop, error) {
	l := &Loop{sockets: map[int32]*Socket{}, now: time.Now()}
	if err := l.poller.open(); err != nil {
		return nil, err
	}
	go l.run()
	return l, nil
}

// Do has the loop call a function soon.
func (l *Loop) Do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, f)
	if l.asleep {
		l.asleep = false
		l.poller.wake()
	}
}

// Now returns the time of the last event.
func (l *Loop) Now() time.Time { return l.now }

func (l *Loop) run() {
	swept := time.Now()
	for {
		l.poller.wait(l.sockets, l.sleep())
		l.now = time.Now()
		for {
			s := l.poller.next(l.sockets)
			if s == nil {
				break
			}
			s.handler.Ready(s)
		}
		again := l.again
		l.again = nil
		for _, s := range again {
			if l.has(s) {
				s.handler.Ready(s)
			}
		}
		l.runQueue()
		if l.now.Sub(swept) >= Period {
			swept = l.now
			l.sweep()
		}
	}
}

// sleep returns how long to wait for events, in milliseconds; negative for without end.
func (l *Loop) sleep() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asleep = len(l.again) == 0 && len(l.queue) == 0
	switch {
	case !l.asleep:
		return 0
	case len(l.sockets) == 0:
		return -1
	}
	return int(Period.Milliseconds())
}

func (l *Loop) sweep() {
	l.round++
	for fd, s := range l.sockets {
		if !s.swept {
			s.swept = true
			s.keepAlive()
		}
		if int(fd)%rounds == l.round%rounds && s.isLost(silence) {
			s.Failed = true
			s.handler.Ready(s)
		}
		if l.has(s) {
			s.handler.Sweep(s, l.now)
		}
	}
}

// has reports whether a socket belongs to the loop: its handler may have closed it, or taken it to another loop.
func (l *Loop) has(s *Socket) bool { return l.sockets[int32(s.FD)] == s }

// runQueue calls the functions of Do.
func (l *Loop) runQueue() {
	l.mu.Lock()
	queue := l.queue
	l.queue, l.asleep = nil, false
	l.mu.Unlock()
	for _, f := range queue {
		f()
	}
}

// Add adds a non-blocking TCP socket to the loop, which must be the caller. It closes the socket after an error.
func (l *Loop) Add(fd int, handler Handler) (*Socket, error) {
	s := &Socket{FD: fd, handler: handler, loop: l, Readable: true, Writable: true}
	l.sockets[int32(fd)] = s
	if err := l.poller.add(s); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Socket is a non-blocking TCP socket in a loop. Readable and Writable are true until a system call says otherwise, and after an event.
type Socket struct {
	FD                 int
	Readable, Writable bool
	// Ended is set when the peer has sent all or has closed, perhaps before all of it is read. Failed is set when the connection is lost
	// or reset.
	Ended, Failed bool
	// HungUp is set when neither side can send.
	HungUp bool

	handler Handler
	loop    *Loop
	number  int32
	closed  bool
	swept   bool // at least once
}

// Remove takes the socket out of its loop, and leaves it open.
func (s *Socket) Remove() {
	delete(s.loop.sockets, int32(s.FD))
	s.loop.poller.remove(s)
}

// Close closes the socket. Nothing is read or written after it, because the descriptor may be that of another socket then.
func (s *Socket) Close() {
	if s.closed {
		return
	}
	s.closed, s.Readable, s.Writable = true, false, false
	if s.loop.has(s) {
		delete(s.loop.sockets, int32(s.FD))
	}
	_ = unix.Close(s.FD) // it leaves epoll: no other descriptor refers to it
}

// Again has the handler called once more, after those of other sockets that are ready.
func (s *Socket) Again() { s.loop.again = append(s.loop.again, s) }

// Read reads once. The error is unix.EAGAIN if nothing is there; n and the error are 0 and nil at the end.
func (s *Socket) Read(b []byte) (int, error) {
	for {
		if s.closed {
			return 0, net.ErrClosed
		}
		n, err := unix.Read(s.FD, b)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			s.Readable = false
			s.Failed = s.Failed || err != unix.EAGAIN
			return 0, err
		}
		// What arrives after a read that was not filled is a new event, unless the end was reported already.
		s.Readable = n == len(b) || s.Ended && n > 0
		return n, nil
	}
}

// Write writes as much as the kernel takes, and returns how much. The error is nil if it does not take all now.
func (s *Socket) Write(b []byte) (int, error) {
	written := 0
	for written < len(b) && s.Writable {
		n, err := unix.Write(s.FD, b[written:])
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			s.Writable = false
			return written, nil
		case err != nil:
			s.Failed, s.Writable, s.Readable = true, false, true // what the peer has sent before may be there
			return written, err
		default:
			written += n
		}
	}
	return written, nil
}

// CloseWrite says that nothing more will be written.
func (s *Socket) CloseWrite() {
	if !s.closed {
		_ = unix.Shutdown(s.FD, unix.SHUT_WR)
	}
}

// Abort closes the socket with a reset.
func (s *Socket) Abort() {
	if s.closed {
		return
	}
	linger(s.FD)
	s.Close()
}

// isLost reports whether a peer is lost: nothing has come from it for a time, though it was asked more than once, by retransmissions since the
// last acknowledgement, or by probes of a closed window or of an idle connection. A peer that does not read acknowledges the probes of its
// closed window, so it is not lost, however long that takes (RFC 9293, section 3.8.6.1).
func isLost(sinceAck, after time.Duration, retransmits, probes int) bool {
	return sinceAck >= after && (retransmits > 0 || probes > 1)
}
