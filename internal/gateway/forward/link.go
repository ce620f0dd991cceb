// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/pool"
	"github.com/tombolo-mcs/tombolo/internal/gateway/stream"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

const pingInterval, pongTimeout = 15 * time.Second, 10 * time.Second

// closeTimeout is the time for which a side that has sent its last frame waits until the peer closes the connection.
const closeTimeout = 5 * time.Second

var (
	errGoaway  = errors.New("the other gateway shuts down")
	errNoPong  = errors.New("the other gateway has not answered PING")
	errSpare   = fmt.Errorf("the connection is not needed: %w", net.ErrClosed)
	errClosing = fmt.Errorf("the connection is closed after its last frame: %w", net.ErrClosed)
)

// link is a connection to a gateway of another cluster, which carries one stream after another. The fields below loop belong to it.
type link struct {
	pool    *Pool
	remote  *remote
	conn    *tunnel.Conn
	address string
	expires time.Time
	loop    *loop.Loop
	dial    pool.Dial
	proven  atomic.Bool // the other gateway has answered

	number  uint32
	current *client // nil while idle
	closing bool    // no further stream
	gone    bool
	since   time.Time // idle since then
	pinged  time.Time // when the last PING was sent; zero after PONG
	ponged  time.Time // when the last PONG came
	until   time.Time // when a connection whose last frame was sent is closed; zero before
}

// attach begins to use the connection in its loop.
func (l *link) attach() {
	if l.gone { // closed meanwhile
		return
	}
	l.since = time.Now()
	if err := l.conn.Attach(l.loop, l); err != nil {
		l.lost(err)
		return
	}
	l.pool.mu.Lock()
	closed := l.pool.closed
	l.pool.mu.Unlock()
	if closed || !l.conn.IsTrusted() { // neither Close nor CloseUntrusted has seen it
		l.lost(errSpare)
	}
	l.readIdle()
}

// close closes the link soon. Any goroutine may call it.
func (l *link) close() { l.loop.Do(func() { l.lost(errSpare) }) }

// begin takes the link for a stream, and returns false if it can carry none; then it closes the link. The loop calls it.
func (l *link) begin(c *client) bool {
	if l.gone {
		return false
	}
	l.readIdle()
	if l.gone || l.closing || !l.isUsable() {
		l.lost(errSpare)
		return false
	}
	l.number++
	l.current = c
	return true
}

// Ready implements loop.Handler.
func (l *link) Ready(*loop.Socket) {
	if l.current != nil {
		l.current.pump()
		return
	}
	l.readIdle()
}

// readIdle handles the frames that arrive without a stream.
func (l *link) readIdle() {
	for !l.gone && l.current == nil {
		if !l.until.IsZero() {
			l.finishing()
			return
		}
		if s := l.conn.Socket(); l.conn.Queued() > 0 && s.Writable {
			l.conn.Flush()
		}
		frame, ok, err := l.conn.Next()
		if err == nil && ok {
			err = l.receive(frame)
		}
		if err == nil && !ok && l.conn.Socket().Failed {
			err = errLost
		}
		if err != nil {
			l.lost(err)
		}
		if err != nil || !ok {
			return
		}
	}
}

// lost closes the link, and says why to the stream that it carries.
func (l *link) lost(err error) {
	if l.gone {
		return
	}
	l.gone, l.closing = true, true
	c := l.current
	l.current = nil
	l.conn.Release()
	l.pool.remove(l, err)
	if c != nil {
		c.conn, c.link = nil, nil
		c.on(stream.Event{Kind: stream.LinkLost, Err: err})
	}
}

// receive handles a frame.
func (l *link) receive(frame tunnel.Frame) error {
	c := l.current
	switch {
	case frame.Type == wire.TypePong:
		return l.pong()
	case frame.Type == wire.TypeGoaway:
		if l.closing = true; c == nil {
			return errGoaway
		}
		return nil
	case c == nil || frame.Stream != l.number:
	case frame.Type == wire.TypeOpened:
		l.pool.opened(l)
		c.on(stream.Event{Kind: stream.LinkOpened})
		return nil
	case frame.Type == wire.TypeRefused:
		refusal, err := wire.DecodeRefusal(frame.Payload)
		if err == nil {
			l.pool.refused(l, refusal)
			c.importer.denied.add(c.cluster, c.request, refusal, l.loop.Now())
			c.on(stream.Event{Kind: stream.LinkReset, Err: refusal})
		}
		return err
	case frame.Type == wire.TypeReset:
		err := errReset(frame)
		if errors.As(err, &stream.ResetError{}) {
			c.on(stream.Event{Kind: stream.LinkReset, Err: err})
			return nil
		}
		return err
	case frame.Type == wire.TypeData:
		c.on(stream.Event{Kind: stream.LinkData, Data: frame.Payload})
		return nil
	case frame.Type == wire.TypeFin:
		c.on(stream.Event{Kind: stream.LinkFin})
		return nil
	case frame.Type == wire.TypeDone:
		c.on(stream.Event{Kind: stream.LinkDone})
		return nil
	}
	return wire.Violation("%s of stream %d is not permitted now", frame.Type, frame.Stream)
}

// free gives the link back to the pool after a stream.
func (l *link) free() {
	l.current = nil
	l.since = l.loop.Now()
	switch {
	case l.closing || !l.isYoung():
		l.lost(errSpare)
		return
	case !l.pinged.IsZero():
		l.lost(wire.Violation("no PONG before the next frame"))
		return
	}
	l.readIdle()
	if !l.gone {
		l.pool.put(l)
	}
}

// finish closes the link after its last frame.
func (l *link) finish() {
	l.current, l.closing = nil, true
	l.until = l.loop.Now().Add(closeTimeout)
	l.conn.Finish()
	l.finishing()
}

// finishing reads on until the peer has closed the connection too, because the kernel would discard the frame if bytes of the peer were
// unread.
func (l *link) finishing() {
	if finishing(l.conn) {
		l.lost(errClosing)
	}
}

// finishing continues to close a connection, and reports whether it is closed.
func finishing(conn *tunnel.Conn) bool {
	s := conn.Socket()
	if conn.Queued() > 0 && s.Writable {
		conn.Flush()
	}
	if conn.Queued() == 0 {
		s.CloseWrite()
	}
	return conn.Discard()
}

// Sweep implements loop.Handler: it closes a link that is no longer needed, and asks whether the other gateway is there.
func (l *link) Sweep(_ *loop.Socket, now time.Time) {
	switch {
	case l.gone:
	case !l.until.IsZero():
		if now.After(l.until) {
			l.lost(errClosing)
		}
	case l.current != nil: // its client is swept too
	case !l.pinged.IsZero():
		if now.Sub(l.pinged) > pongTimeout {
			l.lost(errNoPong)
		}
	case now.Sub(l.since) < pingInterval || now.Sub(l.ponged) < pingInterval:
	case !l.isUsable() || l.pool.isSpare(l, now.Sub(l.since)):
		l.lost(errSpare)
	default:
		l.pinged = now
		if l.conn.Send(wire.TypePing, 0, make([]byte, wire.PingLength)) != nil {
			l.lost(errLost)
		}
	}
}

func (l *link) pong() error {
	if l.pinged.IsZero() {
		return wire.Violation("PONG without PING")
	}
	now := l.loop.Now()
	observe(l.pool.Metrics.rtt, l.conn.Cluster, now.Sub(l.pinged))
	l.pinged, l.ponged = time.Time{}, now
	l.pool.answered(l)
	return nil
}
