// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/stream"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// client is the stream of a client. Until it is open, its link can be replaced by another. Its fields belong to its loop, which is that of
// its link, once there is one.
type client struct {
	flow
	importer *Importer
	cluster  clusterset.ClusterID
	request  wire.Open
	record   *access // nil without an AccessLog
	started  time.Time
	ctx      context.Context //nolint:containedctx // of the log
	loop     atomic.Pointer[loop.Loop]

	link     *link
	waiting  func() bool // ends the wait for a link; nil if there is none
	asked    time.Time   // when OPEN was sent
	failed   string      // the address of the last gateway that did not open the stream
	peer     net.Addr    // the last gateway
	hasEarly bool        // memory for early bytes is reserved
	// unregister, release and closed are called at the end, and ended then. closed is nil if the stream was never open.
	unregister, release, closed func()
	ended                       func(error)
}

// do has the client's loop call a function, unless the stream has ended. Any goroutine may call it.
func (c *client) do(f func()) {
	l := c.loop.Load()
	l.Do(func() {
		switch {
		case c.loop.Load() != l: // it has moved
			c.do(f)
		case !c.IsOver():
			f()
		}
	})
}

func (c *client) begin(fd int) {
	if !c.add(fd) {
		return
	}
	unregister, refusal := c.importer.Permissions.admit(c.cluster, c.request, func(r *wire.Refusal) {
		c.do(func() { c.on(stream.Event{Kind: stream.Denied, Err: r}) })
	})
	c.unregister = unregister
	if refusal != nil {
		c.on(stream.Event{Kind: stream.Denied, Err: refusal})
		return
	}
	c.on(stream.Event{Kind: stream.Begin})
	c.pump()
}

// add adds the client's socket to the loop.
func (c *client) add(fd int) bool {
	socket, err := c.loop.Load().Add(fd, c)
	if err != nil {
		c.local = nil
		c.on(stream.Event{Kind: stream.Denied, Err: err})
		return false
	}
	c.local = tunnel.NewLocal(socket, c.importer.Buffers)
	return true
}

// Ready implements loop.Handler.
func (c *client) Ready(*loop.Socket) { c.pump() }

// errOpenTimeout is why a stream that was not opened in time is reset.
var errOpenTimeout = &wire.Refusal{Code: wire.CodeTimeout, Text: "no gateway of the other cluster has opened the stream in time"}

// Sweep implements loop.Handler: it ends a stream, or an attempt, that takes too long to open.
func (c *client) Sweep(_ *loop.Socket, now time.Time) {
	if !c.IsOpening() {
		return
	}
	within := cmp.Or(c.importer.openTimeout, openTimeout)
	switch {
	case now.Sub(c.started) >= within:
		c.on(stream.Event{Kind: stream.Denied, Err: errOpenTimeout})
	case c.link != nil && now.Sub(c.asked) >= within/2:
		c.on(stream.Event{Kind: stream.Late})
	}
}

func (c *client) receive(frame tunnel.Frame) error { return c.link.receive(frame) }

func (c *client) lost(err error) {
	if c.link != nil {
		c.link.lost(err)
	}
}

// perform implements flowSide.
func (c *client) perform(a stream.Action) {
	switch a.Do {
	case stream.Connect:
		c.connect(a)
	case stream.Identify:
		c.identify()
	case stream.ReserveEarly:
		if c.hasEarly = c.importer.Buffers.ReserveEarly(); c.hasEarly {
			c.KeepAll()
		}
	case stream.SendOpen:
		c.open(a)
	case stream.Open:
		c.opened()
	case stream.FreeLink, stream.FinishLink, stream.CloseLink:
		c.part(a)
	case stream.Finish:
		c.finish(a.Err)
	default: // flow.perform does them
	}
}

// part parts the stream from its link, which is gone if an action before has failed.
func (c *client) part(a stream.Action) {
	l := c.link
	if l == nil {
		return
	}
	c.failed, c.link, c.conn = l.address, nil, nil
	l.current = nil
	switch a.Do {
	case stream.FreeLink:
		l.free()
	case stream.FinishLink:
		l.finish()
	default:
		l.lost(cmp.Or(a.Err, errSpare))
	}
}

// connect asks for a link.
func (c *client) connect(a stream.Action) {
	if a.After > 0 {
		time.AfterFunc(a.After-rand.N(a.After/2), func() { c.do(func() { c.ask(a) }) })
		return
	}
	c.ask(a)
}

func (c *client) ask(a stream.Action) {
	which := anyLink
	if a.Fresh {
		which = newLink
	}
	c.waiting = c.importer.Pool.request(c.cluster, c.failed, which, func(l *link, err error) {
		if l == nil {
			c.do(func() { c.waiting = nil; c.on(stream.Event{Kind: stream.Unlinked, Err: err}) })
			return
		}
		c.loop.Load().Do(func() { c.linked(l) })
	})
}

// linked takes a link. The client moves to its loop if that is another one, so that one loop wakes for both sockets.
func (c *client) linked(l *link) {
	c.waiting = nil
	old := c.loop.Load()
	if l.loop != old && !c.IsOver() {
		c.local.Remove()
		c.loop.Store(l.loop)
		l.loop.Do(func() {
			if !c.IsOver() {
				c.add(c.local.FD)
			}
			c.linked(l)
		})
		return
	}
	switch {
	case c.IsOver():
		l.loop.Do(func() { l.pool.put(l) })
	case !l.begin(c):
		c.on(stream.Event{Kind: stream.Unlinked, Err: errLost})
	default:
		c.link, c.conn, c.number, c.peer = l, l.conn, l.number, l.conn.RemoteAddr()
		c.Reusable(l.conn.Version > 1)
		c.on(stream.Event{Kind: stream.Linked})
		c.pump()
	}
}

// open sends OPEN with what the client has sent so far.
func (c *client) open(a stream.Action) {
	c.asked = c.link.loop.Now()
	frames := wire.Append(nil, wire.TypeOpen, c.number, c.request.Encode())
	if len(a.Data) > 0 {
		frames = wire.Append(frames, wire.TypeData, c.number, a.Data)
	}
	if a.End {
		frames = wire.Append(frames, wire.TypeFin, c.number, nil)
	}
	if err := c.conn.SendFrames(frames); err != nil {
		c.lost(err)
		return
	}
	c.sent()
}

// identify waits until the gateway knows who the client is, or knows that it cannot, because a gateway has refused the stream for that
// (A3). Gateways of earlier versions deny such streams.
func (c *client) identify() {
	ctx, cancel := context.WithTimeout(c.ctx, openTimeout)
	go func() {
		defer cancel()
		namespace, account := c.importer.Identify(ctx, c.request.Client)
		c.do(func() {
			c.request.ClientNamespace, c.request.ServiceAccount, c.request.Unidentified = namespace, account, false
			if c.record != nil {
				c.record.Stream = c.request
			}
			c.on(stream.Event{Kind: stream.Identified})
		})
	}()
}

// opened counts the stream when it is open.
func (c *client) opened() {
	c.releaseEarly()
	c.closed = c.importer.Metrics.opened(c.cluster)
	observe(c.importer.Metrics.openSeconds, c.cluster, time.Since(c.started))
}

func (c *client) releaseEarly() {
	if c.hasEarly {
		c.hasEarly = false
		c.importer.Buffers.ReleaseEarly()
	}
}

// finish is the end of the stream.
func (c *client) finish(err error) {
	c.releaseEarly()
	if c.waiting != nil {
		c.waiting()
	}
	result, reason := resultOf(err), err
	if result == ResultLocalReset {
		reason = nil
	}
	if c.closed != nil {
		c.closed()
	} else if reason != nil {
		code := wire.CodeUnreachable
		if refusal := refusalOf(err); refusal != nil {
			code = refusal.Code
		}
		c.importer.Metrics.refused(c.cluster, code)
	}
	if c.unregister != nil {
		c.unregister()
	}
	c.release()
	go func() { // the loop does not wait for the log
		c.record.finish(c.peer, result)
		c.ended(reason)
	}()
}
