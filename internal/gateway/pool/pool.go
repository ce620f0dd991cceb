// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pool decides when an importing gateway connects to the gateways of another cluster, to which address, and which client gets the
// connection (G6, G12). It is pure: the caller passes the time and a source of jitter, makes the connections, and reports what became of
// them.
//
// Clients wait in one queue. A connection that is free is for the first of them, so what matters is how many connections are made, not for
// whom: Plan starts as many as clients wait and warm ones are missing, within the bounds.
//
//	             Plan starts a dial                     answered
//	good address ------------------> dial -- Connected ----------> good address
//	     ^                            |          |
//	     |                            | Failed   | Lost before an answer
//	     |                            v          v
//	     +------ answered ------ suspect address: one dial after each pause, verified by PING
//
// A gateway that refuses a stream because of a limit is full: it is reachable, and it is dialed as a suspect one, until a stream opens on a
// connection that is younger than the refusal. Clients wait for connections that become free, until each address has failed or refused again.
//
// A dial without an answer after a short time no longer counts: the next address is tried beside it, as in RFC 8305.
package pool

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// The bounds of the dials to the gateways of one cluster. A gateway accepts 256 handshakes at a time, and needs less than 1 ms of CPU for
// each.
const (
	// maxDials is the number of dials to one address, and of those to all that are not slow.
	maxDials = 128
	// firstDials is the number of dials to an address that has not answered yet; each answer adds one.
	firstDials = 4
)

// The times without an answer after which a dial is slow: the first is usual, and a far gateway has more, half as much again as its last
// answer needed.
const (
	slowAfter    = 200 * time.Millisecond
	maxSlowAfter = time.Second
)

// The pauses before a dial to an address that has failed. They double with each failure, and jitter subtracts up to half.
const (
	firstPause = 20 * time.Millisecond
	// maxPause applies while clients wait, maxIdlePause otherwise.
	maxPause, maxIdlePause = time.Second, 5 * time.Second
	// forgetAfter is the time after a failure from which the next one counts as the first.
	forgetAfter = 10 * time.Second
)

// ErrNoAddress says that a cluster has no address to which a dial could be made.
var ErrNoAddress = errors.New("the cluster publishes no gateway address that this cluster may use")

// Waiter identifies a client that waits. Later ones are larger.
type Waiter uint64

// Dial is an attempt to connect to an address. The caller reports how it ends by Connected or Failed.
type Dial struct {
	Address string
	// Verify is set if the connection is to be reported as connected only after the other gateway has answered a PING.
	Verify bool
	// Began is the time of the Plan that has started the dial.
	Began time.Time

	number uint64
	last   Waiter // that waited when the dial began
}

// Plan is what the caller must do.
type Plan struct {
	// Dial are the dials to start.
	Dial []Dial
	// Fail are the clients that get Err instead of a connection, in their order. They no longer wait.
	Fail []Waiter
	Err  error
	// Wake is when to call Plan again if nothing happens before; zero for never.
	Wake time.Time
}

// Remote is the state for one other cluster. The zero value is ready for use, after Jitter is set.
type Remote struct {
	// Jitter returns a random number from 0 to below 1.
	Jitter func() float64
	// Wanted says that the cluster is in use: addresses that have failed are tried also while no client waits.
	Wanted bool
	// Missing is the number of warm connections that are missing.
	Missing int

	queue    []waiting // in the order of their numbers
	last     Waiter
	gateways map[string]*gateway
	dials    uint64 // the number of the last one
}

type waiting struct {
	waiter Waiter
	avoid  string
}

func (w waiting) compare(to Waiter) int { return cmp.Compare(w.waiter, to) }

// Wait adds a client to the end of the queue. It prefers addresses other than avoid.
func (r *Remote) Wait(avoid string) Waiter {
	r.last++
	r.queue = append(r.queue, waiting{r.last, avoid})
	return r.last
}

// Leave removes a client from the queue, and returns false if the client does not wait.
func (r *Remote) Leave(w Waiter) bool {
	i, found := slices.BinarySearchFunc(r.queue, w, waiting.compare)
	if found {
		r.queue = slices.Delete(r.queue, i, i+1)
	}
	return found
}

// Waiting returns the number of clients that wait.
func (r *Remote) Waiting() int { return len(r.queue) }

// Next removes the client from the queue that gets a connection to an address: the first one that does not avoid it, otherwise the first
// one. It returns false if no client waits.
func (r *Remote) Next(address string) (Waiter, bool) {
	if len(r.queue) == 0 {
		return 0, false
	}
	i := max(0, slices.IndexFunc(r.queue, func(w waiting) bool { return w.avoid != address }))
	w := r.queue[i].waiter
	r.queue = slices.Delete(r.queue, i, i+1)
	return w, true
}

// Connected says that a dial has made a connection.
func (r *Remote) Connected(d Dial, now time.Time) {
	g := r.gateway(d.Address)
	g.remove(d)
	g.took = now.Sub(d.Began)
	if d.Began.After(g.answered) {
		g.answered = d.Began
	}
	g.window = min(g.window+1, maxDials)
	if d.Verify {
		g.answer(d)
	}
}

// Failed says that a dial has made no connection, and why.
func (r *Remote) Failed(d Dial, err error, now time.Time) {
	g := r.gateway(d.Address)
	g.remove(d)
	g.fail(d, err, now, r.Jitter())
	switch {
	case len(g.dials) == 0:
		g.exhausted = r.last
	case g.dials[0].number > d.number:
		g.exhausted = max(g.exhausted, d.last)
	}
}

// Lost says that the other gateway has closed a connection, or did not answer on it, before it had answered an OPEN or a PING, and why.
func (r *Remote) Lost(d Dial, err error, now time.Time) {
	r.gateway(d.Address).fail(d, err, now, r.Jitter())
}

// Answered says that the other gateway has answered a PING on a connection.
func (r *Remote) Answered(d Dial) { r.gateway(d.Address).answer(d) }

// Opened says that the other gateway has opened a stream on a connection.
func (r *Remote) Opened(d Dial) {
	if g := r.gateway(d.Address); g.answer(d) {
		g.failures, g.full = 0, false
	}
}

// Refused says that the other gateway has refused a stream on a connection. limit is not nil if that was because of a limit of its own.
func (r *Remote) Refused(d Dial, limit error, now time.Time) {
	g := r.gateway(d.Address)
	isNew := g.answer(d)
	switch {
	case limit == nil && isNew && !g.full:
		g.failures = 0
	case limit != nil && (isNew || !g.full):
		g.pauseAfter(now, r.Jitter())
		g.full, g.err = true, limit
		g.exhausted = max(g.exhausted, d.last)
	}
}

// Reachable returns whether it is known that the cluster can, or cannot be reached at its addresses, and why not; nil if it can be. The
// caller asks if it has no connection on which the other gateway has answered.
func (r *Remote) Reachable(addresses []string) (known bool, why error) {
	var failed []error
	for _, address := range addresses {
		g := r.gateways[address]
		switch {
		case g != nil && g.suspect:
			failed = append(failed, g.err)
		case g != nil && g.proven:
			known = true
		}
	}
	switch {
	case len(addresses) == 0:
		return true, ErrNoAddress
	case len(failed) == len(addresses):
		return true, errors.Join(failed...) //nolint:wrapcheck // each names its address
	default:
		return known, nil
	}
}

func (r *Remote) gateway(address string) *gateway {
	if r.gateways == nil {
		r.gateways = map[string]*gateway{}
	}
	if r.gateways[address] == nil {
		r.gateways[address] = &gateway{window: firstDials}
	}
	return r.gateways[address]
}
