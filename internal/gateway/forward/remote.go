// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/gateway/pool"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// remote is what the pool has of one cluster. The pool's lock guards it.
type remote struct {
	cluster clusterset.ClusterID
	plan    pool.Remote
	idle    []*link // the last one was used last
	paid    int     // idle ones whose memory is acquired
	links   map[*link]struct{}
	waiting map[pool.Waiter]func(*link, error)
	// then are the calls to make when the lock is released.
	then []func()
	wake *time.Timer
}

func newRemote(p *Pool, cluster clusterset.ClusterID) *remote {
	r := &remote{cluster: cluster, links: map[*link]struct{}{}, waiting: map[pool.Waiter]func(*link, error){}}
	r.plan.Jitter = rand.Float64
	r.wake = time.AfterFunc(time.Hour, func() { p.update(r, func() {}) })
	r.wake.Stop()
	return r
}

// update changes the state of a cluster, and does what follows from that. The caller does not hold the lock.
func (p *Pool) update(r *remote, event func()) {
	p.mu.Lock()
	event()
	p.follow(r)
	then := r.then
	r.then = nil
	p.mu.Unlock()
	for _, call := range then {
		call()
	}
}

// follow does what is planned for a cluster. The caller holds the lock.
func (p *Pool) follow(r *remote) {
	if p.closed {
		for deliver := r.next(""); deliver != nil; deliver = r.next("") {
			r.then = append(r.then, func() { deliver(nil, net.ErrClosed) })
		}
		r.wake.Stop()
		return
	}
	if r.plan.Missing = 0; r.plan.Wanted {
		r.plan.Missing = max(0, warm-len(r.idle))
	}
	now := time.Now()
	planned := r.plan.Plan(p.Addresses(r.cluster), now)
	for _, id := range planned.Fail {
		deliver := r.waiting[id]
		delete(r.waiting, id)
		r.then = append(r.then, func() { deliver(nil, planned.Err) })
	}
	for _, d := range planned.Dial {
		go p.dial(r, d)
	}
	r.wake.Stop()
	if !planned.Wake.IsZero() {
		r.wake.Reset(planned.Wake.Sub(now))
	}
}

// wait adds a client that waits for a connection.
func (r *remote) wait(avoid string, deliver func(*link, error)) pool.Waiter {
	id := r.plan.Wait(avoid)
	r.waiting[id] = deliver
	return id
}

// leave removes a client, and returns false if it does not wait.
func (r *remote) leave(id pool.Waiter) bool {
	delete(r.waiting, id)
	return r.plan.Leave(id)
}

// next removes the client that gets a connection to an address, and returns its function; nil if none waits.
func (r *remote) next(address string) func(*link, error) {
	id, ok := r.plan.Next(address)
	if !ok {
		return nil
	}
	deliver := r.waiting[id]
	delete(r.waiting, id)
	return deliver
}

// take removes the idle connection that was used last, and prefers addresses other than avoid; nil if there is none. It closes those that
// can carry no stream.
func (r *remote) take(avoid string) *link {
	for len(r.idle) > 0 {
		i := len(r.idle) - 1
		for j, l := range r.idle {
			if l.address != avoid {
				i = j
			}
		}
		l := r.idle[i]
		r.idle = slices.Delete(r.idle, i, i+1)
		if l.isYoung() {
			return l
		}
		l.close()
	}
	return nil
}

// errLost says that the other gateway has closed a connection directly after the handshake, for example because it has too many.
var errLost = errors.New("the other gateway has closed the connection")
