// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package handshakes accepts connections of unknown peers, and bounds what they cost until they are known (G12). TLS begins when the
// ClientHello of a connection is complete: before that, a connection has no goroutine. If there are too many connections, those that are
// furthest from completion are closed.
package handshakes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// sweep is the time between two looks for connections whose ClientHello is late.
const sweep = time.Second

// Acceptor accepts connections.
type Acceptor struct {
	// Begin does the handshake with a peer. It runs in a goroutine of its own, and takes over the connection.
	Begin func(*net.TCPConn, *Handshake)
	// Closed is called with each connection that is closed before Begin, and why.
	Closed func(conn *net.TCPConn, reason error)

	watch *watch

	mu      sync.Mutex
	pending pending
	ended   bool // no further connection is accepted
}

// Why a connection is closed before TLS begins.
var (
	errLate   = fmt.Errorf("no whole ClientHello within %s", firstTimeout)
	errGone   = errors.New("closed before the ClientHello")
	errTooFar = errors.New("too many connections of unknown peers: this one was furthest from completion")
)

// Accept accepts connections until the listener is closed. The connections whose peers are not known then are still served.
func (a *Acceptor) Accept(ctx context.Context, listener *net.TCPListener) error {
	var err error
	if a.watch, err = newWatch(); err != nil {
		return fmt.Errorf("watch connections: %w", err)
	}
	if a.pending.maxPending == 0 { // not in tests
		// cmd/tombolo-gateway sets GOMAXPROCS to four times what the process may use.
		a.pending = pending{maxPending: maxPending, maxBegun: maxBegun, maxWorking: max(2, runtime.GOMAXPROCS(0)/4)}
	}
	go a.observe()
	pause := rate.NewLimiter(10, 1)
	for {
		conn, err := listener.AcceptTCP()
		switch {
		case err == nil:
			a.add(conn)
		case errors.Is(err, net.ErrClosed):
			a.mu.Lock()
			a.ended = true
			a.mu.Unlock()
			return nil
		default: // too many open files, for example
			a.mu.Lock()
			todo := a.pending.shed()
			a.mu.Unlock()
			a.perform(todo, errTooFar)
			_ = pause.Wait(ctx)
		}
	}
}

func (a *Acceptor) add(conn *net.TCPConn) {
	c := &peer{conn: conn, source: sourceOf(conn), turn: make(chan struct{}, 1)}
	a.mu.Lock()
	todo := a.pending.arrive(c, time.Now())
	a.mu.Unlock()
	a.perform(todo, errTooFar)
	if err := a.watch.add(c); err != nil {
		a.drop(c, err)
	}
}

// sourceOf returns what connections share that are served in turn with others: the address, or the network of a host with IPv6.
func sourceOf(conn *net.TCPConn) netip.Prefix {
	address := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap().WithZone("")
	bits := 64
	if address.Is4() {
		bits = 32
	}
	prefix, _ := address.Prefix(bits) // not valid only if the address is not
	return prefix
}

// observe begins the handshakes whose ClientHello is complete, until no connection can come.
func (a *Acceptor) observe() {
	defer a.watch.close()
	for ended := false; !ended; {
		active, err := a.watch.wait(time.Now().Add(sweep))
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			a.mu.Lock()
			todo := a.pending.clear()
			a.mu.Unlock()
			a.perform(todo, err)
			return
		}
		now := time.Now()
		for _, c := range active {
			to := c.progress()
			if to == left {
				a.drop(c, errGone)
				continue
			}
			a.mu.Lock()
			todo := a.pending.advance(c, to, now)
			a.mu.Unlock()
			a.perform(todo, errTooFar)
		}
		a.mu.Lock()
		todo := a.pending.expire(now)
		ended = a.ended && a.pending.isEmpty()
		a.mu.Unlock()
		a.perform(todo, errLate)
	}
}

// drop closes a connection for which TLS has not begun.
func (a *Acceptor) drop(c *peer, reason error) {
	a.mu.Lock()
	var todo actions
	if c.stage < waiting {
		todo.close = append(todo.close, a.pending.remove(c))
	}
	a.mu.Unlock()
	a.perform(todo, reason)
}

// perform does what is to be done after an event.
func (a *Acceptor) perform(todo actions, reason error) {
	for _, c := range todo.close {
		_ = c.conn.SetLinger(0) // so that the kernel keeps no state
		c.conn.Close()
		if c.waited.IsZero() {
			a.watch.remove(c)
			a.Closed(c.conn, reason)
		}
	}
	for _, c := range todo.turns {
		c.turn <- struct{}{}
	}
	for _, c := range todo.begin {
		a.watch.remove(c)
		go a.Begin(c.conn, &Handshake{a, c})
	}
}

// Handshake is a handshake that has begun.
type Handshake struct {
	acceptor *Acceptor
	peer     *peer
}

// Wait is called before the handshake waits for the peer.
func (h *Handshake) Wait() { h.advance(waiting) }

// Continue is called when the peer has answered. It returns when it is the turn of the handshake, or the connection is closed.
func (h *Handshake) Continue() {
	if h.advance(resumed) {
		<-h.peer.turn
	}
}

// End is called when the peer is known, and when the handshake has failed. It may be called again.
func (h *Handshake) End() { h.advance(left) }

// advance reports whether the handshake has waited for the peer, and was not closed meanwhile.
func (h *Handshake) advance(to stage) bool {
	a := h.acceptor
	a.mu.Lock()
	waited := h.peer.stage == waiting
	todo := a.pending.advance(h.peer, to, time.Now())
	a.mu.Unlock()
	a.perform(todo, errTooFar)
	return waited
}
