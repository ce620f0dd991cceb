// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"sync"
	"time"

	"github.com/tombolo-mcs/tombolo/pkg/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
)

const (
	pingInterval, pongTimeout = 15 * time.Second, 10 * time.Second
	// maxAge is the age after which a connection carries no further stream, so that new certificates and addresses come into use.
	maxAge = 10 * time.Minute
)

var errGoaway = errors.New("the other gateway shuts down")

// link is a connection to a gateway of another cluster, which carries one stream after another.
type link struct {
	pool    *Pool
	remote  *remote
	conn    *tunnel.Conn
	address string
	expires time.Time

	mu      sync.Mutex
	number  uint32
	current *outgoing // nil while idle
	closing bool      // no further stream
	since   time.Time // idle since then
	pinged  time.Time // when the last PING was sent; zero after PONG
	timer   *time.Timer
}

// begin takes the link for a stream, and returns the stream's number. It returns false if the link can carry none.
func (l *link) begin(o *outgoing) (uint32, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing || l.conn.SetReadDeadline(time.Time{}) != nil {
		return 0, false
	}
	l.number++
	l.current = o
	return l.number, true
}

// read handles the frames of the other gateway until the connection is closed.
func (l *link) read() {
	err := handle(l.conn, l.receive)
	l.mu.Lock()
	o := l.current
	l.current, l.closing = nil, true
	l.mu.Unlock()
	l.conn.Release()
	l.pool.remove(l)
	if o != nil {
		o.lost(l.address, err)
	}
}

func (l *link) receive(frame tunnel.Frame) error {
	l.mu.Lock()
	o, number := l.current, l.number
	l.mu.Unlock()
	switch {
	case frame.Type == wire.TypePong:
		return l.pong()
	case frame.Type == wire.TypeGoaway:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.closing = true
		if l.current == nil {
			return errGoaway
		}
		return nil
	case o == nil || frame.Stream != number:
	case frame.Type == wire.TypeOpened:
		return o.isOpen()
	case frame.Type == wire.TypeRefused:
		refusal, err := wire.DecodeRefusal(frame.Payload)
		if err != nil {
			return err
		}
		return refusal
	case frame.Type == wire.TypeReset:
		return errReset(frame)
	case frame.Type == wire.TypeData || frame.Type == wire.TypeFin:
		return o.receive(frame)
	case frame.Type == wire.TypeDone:
		if err := o.isDone(); err != nil {
			return err
		}
		return l.free()
	}
	return wire.Violation("%s of stream %d is not permitted now", frame.Type, frame.Stream)
}

// free gives the link back to the pool after a stream.
func (l *link) free() error {
	l.mu.Lock()
	l.current = nil
	l.closing = l.closing || !time.Now().Before(l.expires)
	closing, pinged := l.closing, l.pinged
	l.mu.Unlock()
	switch {
	case closing:
		return errGoaway
	case !pinged.IsZero():
		return wire.Violation("no PONG before the next frame")
	}
	l.pool.put(l)
	return nil
}

// wait says that the link is idle from now on.
func (l *link) wait() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = time.Now()
	l.arm()
}

func (l *link) arm() {
	if l.timer == nil {
		l.timer = time.AfterFunc(pingInterval, l.tick)
	} else {
		l.timer.Reset(pingInterval)
	}
}

// tick closes a link that is no longer needed, and asks whether the other gateway is there.
func (l *link) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.current != nil || l.closing || !l.pinged.IsZero() || now.Sub(l.since) < pingInterval {
		return // it is used, or was used meanwhile: the timer runs again
	}
	if !now.Before(l.expires) || l.pool.isSpare(l, now.Sub(l.since)) {
		l.closing = true
		l.conn.Close()
		return
	}
	l.pinged = now
	if l.conn.SetReadDeadline(now.Add(pongTimeout)) != nil || l.conn.Send(wire.TypePing, 0, make([]byte, wire.PingLength)) != nil {
		l.conn.Close()
	}
}

func (l *link) pong() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pinged.IsZero() {
		return wire.Violation("PONG without PING")
	}
	observe(l.pool.Metrics.rtt, l.conn.Cluster, time.Since(l.pinged))
	l.pinged = time.Time{}
	if l.current != nil {
		return nil
	}
	l.arm()
	return l.conn.SetReadDeadline(time.Time{})
}
