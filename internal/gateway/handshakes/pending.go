// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package handshakes

import (
	"container/list"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// The limits of connections whose peer is not known yet (G12).
const (
	// maxPending is the number of connections for which TLS has not begun. A quarter of them may have sent a part of a ClientHello, and a
	// quarter a whole one, so that half is for new connections. Each takes about 1 KB.
	maxPending = 4096
	// maxBegun is the number of connections for which TLS has begun. Such a connection takes about 40 KB.
	maxBegun = 1024
	// grace is the time that a peer has at least for its answer to the handshake messages of this side, even if others wait.
	grace = time.Second
	// firstTimeout is the time for the first byte, and again for the rest of the ClientHello.
	firstTimeout = 5 * time.Second
)

// stage says how far a handshake is.
type stage int

const (
	silent   stage = iota // the peer has sent nothing
	partial               // the peer has sent a part of a ClientHello
	complete              // the ClientHello is complete, and waits until TLS begins
	waiting               // TLS has begun, and waits for the peer
	resumed               // the peer has answered, and waits until TLS continues
	working               // TLS computes
	left                  // the peer is known, or the connection is closed
)

// peer is a connection whose peer is not known yet.
type peer struct {
	conn   *net.TCPConn
	raw    syscall.RawConn // of conn
	id     int32           // of the watch
	gone   bool            // the peer has closed the connection
	source netip.Prefix
	stage  stage
	since  time.Time // of the stage
	// waited is the first time at which TLS has waited for the peer.
	waited time.Time
	// element is the element of the list of the stage.
	element *list.Element
	// turn receives a value when TLS may continue.
	turn chan struct{}
}

// pending are the connections whose peer is not known yet. It is a state machine without clock and sockets: each event returns what is to
// be done. The connections for which TLS computes are limited, so that handshakes do not delay streams. If there are too many connections,
// those that are closest to completion continue.
type pending struct {
	maxPending, maxBegun, maxWorking int

	// stages are the connections of the stages silent, partial, waiting and resumed, from the oldest to the newest.
	stages [left]list.List
	// complete are the connections of the stage complete.
	complete queue
	working  int
}

// actions are what is to be done after an event.
type actions struct {
	close []*peer // connections to close
	begin []*peer // connections for which TLS begins
	turns []*peer // connections for which TLS continues
}

// arrive adds a connection. If there are too many, it closes the oldest one whose peer has sent nothing.
func (p *pending) arrive(c *peer, now time.Time) actions {
	c.stage = left
	p.move(c, silent, now)
	var result actions
	if p.stages[silent].Len()+p.stages[partial].Len()+p.complete.len > p.maxPending {
		result.close = append(result.close, p.remove(p.oldest(silent)))
	}
	return result
}

// advance moves a connection to a stage that may follow on its stage, and begins and continues others if that is possible now. If there are
// too many in a stage, it closes the oldest one that has sent a part of a ClientHello, or the newest one of the source with the most whole
// ones. It closes none for which TLS has begun, unless its peer does not answer.
func (p *pending) advance(c *peer, to stage, now time.Time) actions {
	switch {
	case to == waiting && c.stage == working && c.waited.IsZero():
		c.waited = now
		p.move(c, waiting, now)
	case to == waiting && c.stage == working: // the answer of the peer comes in parts
		p.move(c, waiting, c.waited)
		p.stages[waiting].MoveToFront(c.element)
	case to == resumed && c.stage == waiting, c.stage < to && to <= complete, to == left:
		p.move(c, to, now)
	}
	result := p.schedule(now)
	if p.stages[partial].Len() > p.maxPending/4 {
		result.close = append(result.close, p.remove(p.oldest(partial)))
	}
	if p.complete.len > p.maxPending/4 {
		result.close = append(result.close, p.remove(p.complete.last()))
	}
	return result
}

// clear closes all connections for which TLS has not begun.
func (p *pending) clear() actions {
	var result actions
	for _, s := range []stage{silent, partial} {
		for p.stages[s].Len() > 0 {
			result.close = append(result.close, p.remove(p.oldest(s)))
		}
	}
	for p.complete.len > 0 {
		result.close = append(result.close, p.remove(p.complete.first()))
	}
	return result
}

// expire closes the connections whose ClientHello is late.
func (p *pending) expire(now time.Time) actions {
	result := p.schedule(now)
	for _, s := range []stage{silent, partial} {
		for c := p.oldest(s); c != nil && now.Sub(c.since) >= firstTimeout; c = p.oldest(s) {
			result.close = append(result.close, p.remove(c))
		}
	}
	return result
}

// shed closes the older half of the connections whose peer has sent nothing. It is for a process that has too many open files.
func (p *pending) shed() actions {
	var result actions
	for range (p.stages[silent].Len() + 1) / 2 {
		result.close = append(result.close, p.remove(p.oldest(silent)))
	}
	return result
}

// schedule uses the free turns: first for connections for which TLS has begun, in the order in which their peers have answered.
func (p *pending) schedule(now time.Time) actions {
	var result actions
	for p.working < p.maxWorking {
		if c := p.oldest(resumed); c != nil {
			p.move(c, working, now)
			result.turns = append(result.turns, c)
			continue
		}
		if p.complete.len == 0 {
			break
		}
		if p.working+p.stages[waiting].Len() >= p.maxBegun {
			slow := p.oldest(waiting)
			if slow == nil || now.Sub(slow.since) < grace {
				break
			}
			result.close = append(result.close, p.remove(slow))
		}
		c := p.complete.first()
		p.move(c, working, now)
		result.begin = append(result.begin, c)
	}
	return result
}

func (p *pending) oldest(s stage) *peer {
	if front := p.stages[s].Front(); front != nil {
		return front.Value.(*peer)
	}
	return nil
}

func (p *pending) remove(c *peer) *peer {
	p.move(c, left, time.Time{})
	return c
}

// isEmpty reports whether no connection is in a stage before TLS begins.
func (p *pending) isEmpty() bool {
	return p.stages[silent].Len()+p.stages[partial].Len()+p.complete.len == 0
}

func (p *pending) move(c *peer, to stage, now time.Time) {
	switch c.stage {
	case left:
	case complete:
		p.complete.remove(c)
	case working:
		p.working--
	default:
		p.stages[c.stage].Remove(c.element)
	}
	c.stage, c.since = to, now
	switch to {
	case left:
	case complete:
		p.complete.add(c)
	case working:
		p.working++
	default:
		c.element = p.stages[to].PushBack(c)
	}
}

// queue are connections in the order in which they are served: each source in turn, and those of one source in the order of arrival.
type queue struct {
	len     int
	sources map[netip.Prefix]*list.Element
	// order has the *list.List of each source that has connections, from the next one to the one that was served last.
	order list.List
}

func (q *queue) add(c *peer) {
	if q.sources == nil {
		q.sources = map[netip.Prefix]*list.Element{}
	}
	at, ok := q.sources[c.source]
	if !ok {
		at = q.order.PushBack(list.New())
		q.sources[c.source] = at
	}
	c.element = at.Value.(*list.List).PushBack(c)
	q.len++
}

func (q *queue) remove(c *peer) {
	at := q.sources[c.source]
	of := at.Value.(*list.List)
	if of.Front() == c.element { // it was served
		q.order.MoveToBack(at)
	}
	of.Remove(c.element)
	if of.Len() == 0 {
		q.order.Remove(at)
		delete(q.sources, c.source)
	}
	q.len--
}

// first returns the connection that is next.
func (q *queue) first() *peer {
	return q.order.Front().Value.(*list.List).Front().Value.(*peer)
}

// last returns the newest connection of the source with the most ones.
func (q *queue) last() *peer {
	var longest *list.List
	for at := q.order.Front(); at != nil; at = at.Next() {
		if of := at.Value.(*list.List); longest == nil || of.Len() > longest.Len() {
			longest = of
		}
	}
	return longest.Back().Value.(*peer)
}
