// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/go-logr/logr"

	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/stream"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

// maxLate is the number of bytes of a refused stream that a dialer may have sent before it has received REFUSED.
const maxLate = 64 << 10

var errIdle = errors.New("the connection was idle for too long")

// accepted is a connection that another gateway has opened, which carries one stream after another. Its fields belong to its loop.
type accepted struct {
	exporter *Exporter
	conn     *tunnel.Conn
	loop     *loop.Loop
	ctx      context.Context //nolint:containedctx // of the log and of the connections to backends
	release  func()          // called at the end
	expires  time.Time       // when it carries no further stream

	number  uint32
	current *backend // the last stream; nil before the first
	pings   int
	idle    time.Time // when the last frame without a stream has come
	late    int       // bytes of the last stream that have come after REFUSED
	until   time.Time // when a connection whose last frame was sent is closed; zero before
	gone    bool
}

// attach begins to use the connection in its loop.
func (c *accepted) attach() {
	if c.gone { // closed meanwhile
		return
	}
	c.idle = time.Now()
	if err := c.conn.Attach(c.loop, c); err != nil {
		c.lost(err)
		return
	}
	if err := c.check(); err != nil { // CloseUntrusted has not seen it
		c.lost(err)
		return
	}
	if c.exporter.isDraining() {
		c.goAway()
	}
	c.readIdle()
}

// close closes the connection soon. Any goroutine may call it.
func (c *accepted) close() { c.loop.Do(func() { c.lost(net.ErrClosed) }) }

// hasStream reports whether a stream uses the connection.
func (c *accepted) hasStream() bool { return c.current != nil && !c.current.IsOver() }

// Ready implements loop.Handler.
func (c *accepted) Ready(*loop.Socket) {
	if c.hasStream() {
		c.current.pump()
		return
	}
	c.readIdle()
}

// Sweep implements loop.Handler.
func (c *accepted) Sweep(_ *loop.Socket, now time.Time) {
	switch {
	case c.gone:
	case !c.until.IsZero():
		if now.After(c.until) {
			c.lost(errClosing)
		}
	case !c.hasStream() && now.Sub(c.idle) > idleTimeout:
		c.lost(errIdle)
	}
}

// readIdle handles the frames that arrive without a stream.
func (c *accepted) readIdle() {
	for !c.gone && !c.hasStream() {
		if !c.until.IsZero() {
			if finishing(c.conn) {
				c.lost(errClosing)
			}
			return
		}
		if s := c.conn.Socket(); c.conn.Queued() > 0 && s.Writable {
			c.conn.Flush()
		}
		frame, ok, err := c.conn.Next()
		if err == nil && ok {
			err = c.receive(frame)
		}
		if err == nil && !ok && c.conn.Socket().Failed {
			err = errLost
		}
		if err != nil {
			c.lost(err)
		}
		if err != nil || !ok {
			return
		}
	}
}

// lost closes the connection and ends the stream.
func (c *accepted) lost(err error) {
	if c.gone {
		return
	}
	c.gone = true
	c.conn.Release()
	if c.current != nil {
		c.current.conn = nil
		c.current.on(stream.Event{Kind: stream.LinkLost, Err: err})
	}
	c.ended(err)
}

func (c *accepted) ended(err error) {
	c.release()
	c.exporter.remove(c)
	if !errors.Is(err, errClosing) {
		logr.FromContextOrDiscard(c.ctx).V(1).Info("a connection has ended", "cluster", c.conn.Cluster, "reason", err.Error())
	}
}

// goAway asks the dialer to open no further stream.
func (c *accepted) goAway() {
	if c.gone {
		return
	}
	if err := c.conn.Send(wire.TypeGoaway, 0, nil); err != nil {
		c.lost(err)
	}
}

// receive handles a frame. After an error, the connection must be closed.
func (c *accepted) receive(frame tunnel.Frame) error {
	c.idle = c.loop.Now()
	idle := !c.hasStream()
	switch {
	case frame.Type == wire.TypePing && idle && c.pings < maxPings:
		c.pings++
		if c.check() != nil {
			c.goAway()
		}
		if c.gone {
			return nil
		}
		return c.conn.Send(wire.TypePong, 0, frame.Payload)
	case frame.Type == wire.TypeOpen && idle && frame.Stream == c.number+1:
		c.number, c.pings, c.late = frame.Stream, 0, 0
		c.open(frame.Payload)
		return nil
	case frame.Stream != c.number || c.current == nil:
	case frame.Type == wire.TypeReset:
		err := errReset(frame)
		if errors.As(err, &stream.ResetError{}) && !idle {
			c.current.on(stream.Event{Kind: stream.LinkReset, Err: err})
			return nil
		}
		return err
	case idle && c.current.refused && (frame.Type == wire.TypeFin || frame.Type == wire.TypeData && c.late+frame.Length <= maxLate):
		c.late += frame.Length // sent before the dialer has received REFUSED
		return nil
	case idle:
	case frame.Type == wire.TypeData:
		c.current.on(stream.Event{Kind: stream.LinkData, Data: frame.Payload})
		return nil
	case frame.Type == wire.TypeFin:
		c.current.on(stream.Event{Kind: stream.LinkFin})
		return nil
	}
	return wire.Violation("%s of stream %d is not permitted now", frame.Type, frame.Stream)
}

// finish closes the connection after its last frame.
func (c *accepted) finish() {
	if c.gone {
		return
	}
	c.until = c.loop.Now().Add(closeTimeout)
	c.conn.Finish()
	c.conn.Socket().Again()
}
