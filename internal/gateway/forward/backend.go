// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"fmt"
	"net"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/gateway/balance"
	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/stream"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

// backend is the stream to a backend.
type backend struct {
	flow
	carrier *accepted
	request wire.Open
	record  *access      // nil without an AccessLog
	peer    fmt.Stringer // nil until it is connected
	attempt *attempt     // to connect; nil before and after it
	refused bool
	// leave, release and closed are called at the end; nil if they have nothing to end.
	leave, release, closed func()
}

// open begins to connect to a backend, or refuses the stream.
func (c *accepted) open(payload []byte) {
	e := c.exporter
	request, err := wire.DecodeOpen(payload)
	request.Skipped = nil // another cluster has chosen them, and they would be kept as long as the stream
	b := &backend{carrier: c, request: request, record: e.Access.begin(Exporting, c.conn.Cluster, request)}
	b.flow = flow{
		Stream: stream.New(stream.Exporting, false), side: b, conn: c.conn, number: c.number, bytes: b.record.counting(e.Metrics.bytes(c.conn.Cluster)),
	}
	c.current = b
	refusal := refusalOf(err)
	if refusal == nil {
		refusal = c.refusal(c.ctx)
	}
	if refusal != nil {
		b.refuse(refusal)
		return
	}
	cluster := c.conn.Cluster
	go func() { // to find the endpoints of a large service takes longer than other streams should wait
		endpoints, release, refusal := e.admit(cluster, request, func(r *wire.Refusal) {
			c.loop.Do(func() { b.on(stream.Event{Kind: stream.Denied, Err: denied{r}}) })
		})
		c.loop.Do(func() { b.admitted(endpoints, release, refusal) })
	}()
}

// admitted begins to connect to one of the endpoints of a stream that is admitted, or refuses the stream.
func (b *backend) admitted(endpoints balance.Endpoints, release func(), refusal *wire.Refusal) {
	b.release = release
	switch {
	case b.IsOver(): // meanwhile
		b.free()
	case refusal != nil:
		b.refuse(refusal)
	default:
		now := b.carrier.loop.Now()
		b.attempt = &attempt{endpoints: endpoints, latest: now.Add(connectTimeouts * b.carrier.exporter.connectWithin())}
		b.try()
	}
}

// denied is why a stream that was opened, or is being opened, is no longer allowed: it is not refused, but lost.
type denied struct{ refusal *wire.Refusal }

func (d denied) Error() string { return d.refusal.Error() }

func (b *backend) refuse(refusal *wire.Refusal) {
	b.free() // before the other gateway can open another stream instead
	e := b.carrier.exporter
	e.Metrics.refused(b.carrier.conn.Cluster, refusal.Code)
	e.report(b.carrier.conn.Cluster, b.request, refusal)
	b.on(stream.Event{Kind: stream.Denied, Err: refusal})
}

// connected takes the connection of the attempt.
func (b *backend) connected() {
	a := b.attempt
	b.attempt, b.leave, b.peer = nil, a.leave, a.endpoints.Addresses[a.tried-1]
	b.closed = b.carrier.exporter.Metrics.opened(b.carrier.conn.Cluster)
	b.local = tunnel.NewLocal(a.socket, b.carrier.exporter.Buffers)
	if a.endpoints.HasProxyHeader {
		header, err := proxyHeader(b.carrier.conn.Cluster, b.request)
		if err != nil {
			b.refuse(&wire.Refusal{Code: wire.CodeInternal, Text: "the client's address cannot be encoded"})
			return
		}
		b.prefix = header
	}
	b.on(stream.Event{Kind: stream.Connected})
	b.pump()
	if !b.IsOver() {
		b.write(nil) // the header alone, if the client has sent nothing
	}
}

// Ready implements loop.Handler.
func (b *backend) Ready(*loop.Socket) {
	if b.attempt != nil {
		b.attempted()
		return
	}
	b.pump()
}

// Sweep implements loop.Handler.
func (b *backend) Sweep(_ *loop.Socket, now time.Time) {
	if b.attempt != nil {
		b.sweep(now)
	}
}

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

// free gives back what the stream uses.
func (b *backend) free() {
	b.attempt.end()
	ends := [...]func(){b.leave, b.release, b.closed}
	b.attempt, b.leave, b.release, b.closed = nil, nil, nil, nil
	for _, end := range ends {
		if end != nil {
			end()
		}
	}
}

// finish is the end of the stream.
func (b *backend) finish(err error) {
	b.free()
	if c := b.carrier; !c.gone {
		c.conn.Socket().Again() // the next frames may be there already
	}
	if b.record != nil {
		go b.record.finish(b.peer, resultOf(err)) // the loop does not wait for the log
	}
}
