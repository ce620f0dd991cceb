// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/gateway/budget"
	"github.com/tombolo-mcs/tombolo/internal/gateway/pool"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// warm is the number of idle connections to a cluster in use, and keepFor is how long others stay idle: the pool keeps as many as were used
// at a time in the last minute.
const (
	warm    = 2
	keepFor = time.Minute
)

// Pool contains the connections to the gateways of other clusters. The package pool decides when it connects, and to which.
type Pool struct {
	// Addresses returns the addresses of a cluster's gateways, as host and port.
	Addresses func(clusterset.ClusterID) []string
	// Permit returns why an IP address is not one of a cluster's gateways, whatever DNS says; nil if it may be. It may be nil.
	Permit func(clusterset.ClusterID, netip.Addr) error
	// Config returns how to verify them.
	Config  func(clusterset.ClusterID) *tls.Config
	Buffers *tunnel.Buffers
	Metrics *Metrics
	// Memory is the budget of which each idle connection takes budget.Connection bytes, but the warm ones; nil for none. That of a stream
	// includes its connection.
	Memory *budget.Memory

	mu      sync.Mutex
	closed  bool
	remotes map[clusterset.ClusterID]*remote
}

// remote returns the state of a cluster. The caller holds the lock.
func (p *Pool) remote(cluster clusterset.ClusterID) *remote {
	if p.remotes == nil {
		p.remotes = map[clusterset.ClusterID]*remote{}
	}
	if p.remotes[cluster] == nil {
		p.remotes[cluster] = newRemote(p, cluster)
	}
	return p.remotes[cluster]
}

// Want says which clusters are in use. The pool keeps warm connections to them, and closes the idle ones of others.
func (p *Pool) Want(clusters []clusterset.ClusterID) {
	p.mu.Lock()
	for _, cluster := range clusters {
		p.remote(cluster)
	}
	remotes := maps.Clone(p.remotes)
	p.mu.Unlock()
	for cluster, r := range remotes {
		p.update(r, func() {
			if r.plan.Wanted = slices.Contains(clusters, cluster); r.plan.Wanted {
				return
			}
			for _, l := range r.idle {
				l.close()
			}
		})
	}
}

// Close closes all connections, and opens no other.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	remotes := slices.Collect(maps.Values(p.remotes))
	p.mu.Unlock()
	for _, r := range remotes {
		p.update(r, func() {
			for l := range r.links {
				l.close()
			}
		})
	}
}

// Reachable returns the clusters in use to which a connection was tried, with why the last attempts have failed; nil if a gateway has
// answered on a connection that can carry a stream, or has answered and no attempt has failed since. A connection that is accepted and
// closed at once counts as a failure.
func (p *Pool) Reachable() map[clusterset.ClusterID]error {
	p.mu.Lock()
	defer p.mu.Unlock()
	result := map[clusterset.ClusterID]error{}
	for cluster, r := range p.remotes {
		if !r.plan.Wanted {
			continue
		}
		if slices.ContainsFunc(slices.Collect(maps.Keys(r.links)), func(l *link) bool { return l.proven.Load() && l.isUsable() }) {
			result[cluster] = nil
		} else if known, why := r.plan.Reachable(p.Addresses(cluster)); known {
			result[cluster] = why
		}
	}
	return result
}

// choice says which connections request returns.
type choice int

const (
	anyLink choice = iota // an idle one, if there is one
	newLink               // none that is idle now
)

// request calls deliver once, without locks, with a connection to a gateway of a cluster, or why there is none: at once, before request
// returns, if a connection is idle, otherwise when one is free. It prefers addresses other than avoid. The result cancels the request; it
// returns false if deliver was called, or is being called.
func (p *Pool) request(cluster clusterset.ClusterID, avoid string, which choice, deliver func(*link, error)) (cancel func() bool) {
	p.mu.Lock()
	r := p.remote(cluster)
	p.mu.Unlock()
	var id pool.Waiter
	p.update(r, func() {
		if which == anyLink {
			if l := r.take(avoid); l != nil {
				r.then = append(r.then, func() { deliver(l, nil) })
				p.count(r)
				return
			}
		}
		id = r.wait(avoid, deliver)
	})
	return func() (left bool) {
		if id != 0 {
			p.update(r, func() { left = r.leave(id) })
		}
		return left
	}
}

// put takes a connection that can carry a stream.
func (p *Pool) put(l *link) {
	p.update(l.remote, func() {
		if _, there := l.remote.links[l]; there {
			p.give(l)
		}
	})
}

// give gives a connection to the next client that waits, or keeps it. The caller holds the lock.
func (p *Pool) give(l *link) {
	r := l.remote
	if deliver := r.next(l.address); deliver != nil {
		r.then = append(r.then, func() { deliver(l, nil) })
	} else {
		r.idle = append(r.idle, l)
	}
	p.count(r)
}

// count sets the metrics of a cluster's connections, and acquires the memory of idle ones. It closes those for which there is none. The caller
// holds the lock.
func (p *Pool) count(r *remote) {
	for ; r.paid > max(0, len(r.idle)-warm); r.paid-- {
		p.Memory.Release(string(r.cluster), budget.Connection)
	}
	for r.paid < len(r.idle)-warm {
		if !p.Memory.IsScarce() && p.Memory.Acquire(string(r.cluster), budget.Connection) {
			r.paid++
			continue
		}
		r.idle[0].close()
		r.idle = slices.Delete(r.idle, 0, 1)
	}
	p.Metrics.connections.WithLabelValues(string(r.cluster), "warm").Set(float64(len(r.idle)))
	p.Metrics.connections.WithLabelValues(string(r.cluster), "used").Set(float64(len(r.links) - len(r.idle)))
}

// remove says that a connection is closed, and why.
func (p *Pool) remove(l *link, why error) {
	r := l.remote
	p.update(r, func() {
		delete(r.links, l)
		r.idle = slices.DeleteFunc(r.idle, func(other *link) bool { return other == l })
		p.count(r)
		if !l.proven.Load() && !errors.Is(why, net.ErrClosed) { // this side has not closed it
			r.plan.Lost(l.dial, fmt.Errorf("gateway %s of cluster %s: %w: %w", l.address, r.cluster, errLost, why), time.Now())
		}
	})
}

// answered says that the other gateway has answered a PING. Only the loop of the connection calls it, opened and refused.
func (p *Pool) answered(l *link) {
	if !l.proven.Swap(true) {
		p.update(l.remote, func() { l.remote.plan.Answered(l.dial) })
	}
}

// opened says that the other gateway has opened a stream.
func (p *Pool) opened(l *link) {
	if l.number == 1 { // otherwise it has answered the one before
		l.proven.Store(true)
		p.update(l.remote, func() { l.remote.plan.Opened(l.dial) })
	}
}

// refused says that the other gateway has refused a stream.
func (p *Pool) refused(l *link, why *wire.Refusal) {
	var limit error
	if why.Code == wire.CodeLimit {
		limit = fmt.Errorf("gateway %s of cluster %s: %w", l.address, l.remote.cluster, why)
	}
	if l.number == 1 || limit != nil {
		l.proven.Store(true)
		p.update(l.remote, func() { l.remote.plan.Refused(l.dial, limit, time.Now()) })
	}
}

// isSpare reports whether a connection that has been idle for a time is not needed.
func (p *Pool) isSpare(l *link, idle time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !l.remote.plan.Wanted || idle >= keepFor && len(l.remote.idle) > warm
}
