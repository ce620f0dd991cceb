// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"net"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/stream"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

// backend is the stream to a backend.
type backend struct {
	flow
	carrier *accepted
	record  *access // nil without an AccessLog
	peer    net.Addr
	cancel  context.CancelFunc // ends the attempt to connect
	to      connected
	refused bool
}

// open connects to a backend.
func (c *accepted) open(payload []byte) {
	e := c.exporter
	request, err := wire.DecodeOpen(payload)
	request.Skipped = nil // another cluster has chosen them, and they would be kept as long as the stream
	b := &backend{carrier: c, record: e.Access.begin(Exporting, c.conn.Cluster, request)}
	b.flow = flow{
		Stream: stream.New(stream.Exporting, false), side: b, conn: c.conn, number: c.number, bytes: b.record.counting(e.Metrics.bytes(c.conn.Cluster)),
	}
	c.current = b
	refusal := refusalOf(err)
	if refusal == nil {
		refusal = c.refusal(c.ctx)
	}
	if refusal != nil {
		b.refuse(request, refusal)
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	b.cancel = cancel
	cluster := c.conn.Cluster
	go func() {
		to, refusal := e.connect(ctx, cluster, request, func(r *wire.Refusal) {
			c.loop.Do(func() { b.on(stream.Event{Kind: stream.Denied, Err: denied{r}}) })
		})
		c.loop.Do(func() { b.connected(request, to, refusal) })
	}()
}

// denied is why a stream that was opened, or is being opened, is no longer allowed: it is not refused, but lost.
type denied struct{ refusal *wire.Refusal }

func (d denied) Error() string { return d.refusal.Error() }

func (b *backend) refuse(request wire.Open, refusal *wire.Refusal) {
	e := b.carrier.exporter
	e.Metrics.refused(b.carrier.conn.Cluster, refusal.Code)
	e.report(b.carrier.conn.Cluster, request, refusal)
	b.on(stream.Event{Kind: stream.Denied, Err: refusal})
}

// connected takes the connection to a backend, or refuses the stream.
func (b *backend) connected(request wire.Open, to connected, refusal *wire.Refusal) {
	b.cancel()
	if b.IsOver() { // meanwhile
		to.close()
		return
	}
	if refusal != nil {
		b.refuse(request, refusal)
		return
	}
	b.to, b.peer = to, to.backend.RemoteAddr()
	var socket *loop.Socket
	fd, err := tunnel.Detach(to.backend)
	if err == nil {
		socket, err = b.carrier.loop.Add(fd, b)
	}
	if err != nil {
		b.refuse(request, &wire.Refusal{Code: wire.CodeInternal, Text: "the connection to the endpoint cannot be used"})
		return
	}
	b.local = tunnel.NewLocal(socket, b.carrier.exporter.Buffers)
	b.on(stream.Event{Kind: stream.Connected})
	b.pump()
}

// Ready implements loop.Handler.
func (b *backend) Ready(*loop.Socket) { b.pump() }

// Sweep implements loop.Handler.
func (b *backend) Sweep(*loop.Socket, time.Time) {}

func (b *backend) receive(frame tunnel.Frame) error { return b.carrier.receive(frame) }
func (b *backend) lost(err error)                   { b.carrier.lost(err) }

// perform implements flowSide.
func (b *backend) perform(a stream.Action) {
	c := b.carrier
	switch a.Do {
	case stream.SendRefused:
		refusal := refusalOf(a.Err)
		b.refused = true
		if err := c.conn.Send(wire.TypeRefused, c.number, refusal.Encode()); err != nil {
			c.lost(err)
			return
		}
		if c.conn.Version == 1 || refusal.Code.EndsConnection() {
			c.finish()
		}
	case stream.SendDone:
		var frames []byte
		if a.End {
			frames = wire.Append(frames, wire.TypeFin, c.number, nil)
		}
		if err := c.conn.SendFrames(wire.Append(frames, wire.TypeDone, c.number, nil)); err != nil {
			c.lost(err)
		}
	case stream.FreeLink: // finish has it read on
	case stream.FinishLink:
		c.finish()
	case stream.CloseLink:
		c.lost(net.ErrClosed)
	case stream.Finish:
		b.finish(a.Err)
	default: // flow.perform does them
	}
}

// finish is the end of the stream.
func (b *backend) finish(err error) {
	if b.cancel != nil {
		b.cancel()
	}
	if b.to.release != nil {
		b.to.release()
	}
	if c := b.carrier; !c.gone {
		c.conn.Socket().Again() // the next frames may be there already
	}
	if b.record != nil {
		go b.record.finish(b.peer, resultOf(err)) // the loop does not wait for the log
	}
}
