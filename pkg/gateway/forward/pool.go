// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/tunnel"
)

const (
	dialTimeout = 5 * time.Second
	// warm is the number of idle connections to a cluster in use, and keepFor is how long others stay idle: the pool keeps as many as
	// were used at a time in the last minute.
	warm    = 2
	keepFor = time.Minute
	// retryAfter is the time, at most doubled at random, until a connection for which no client waits is tried again.
	retryAfter = time.Second
)

// Pool contains the connections to the gateways of other clusters.
type Pool struct {
	// Addresses returns the addresses of a cluster's gateways, as host and port.
	Addresses func(clusterset.ClusterID) []string
	// Permit returns why an IP address is not one of a cluster's gateways, whatever DNS says; nil if it may be. It may be nil.
	Permit func(clusterset.ClusterID, netip.Addr) error
	// Config returns how to verify them.
	Config  func(clusterset.ClusterID) *tls.Config
	Buffers *tunnel.Buffers
	Metrics *Metrics

	mu      sync.Mutex
	closed  bool
	remotes map[clusterset.ClusterID]*remote
}

func (p *Pool) remote(cluster clusterset.ClusterID) *remote {
	if p.remotes == nil {
		p.remotes = map[clusterset.ClusterID]*remote{}
	}
	if p.remotes[cluster] == nil {
		p.remotes[cluster] = &remote{cluster: cluster, links: map[*link]struct{}{}}
	}
	return p.remotes[cluster]
}

// Want says which clusters are in use. The pool keeps warm connections to them, and closes the idle ones of others.
func (p *Pool) Want(clusters []clusterset.ClusterID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cluster := range clusters {
		p.remote(cluster)
	}
	for cluster, r := range p.remotes {
		if r.wanted = slices.Contains(clusters, cluster); r.wanted {
			p.prewarm(r)
			continue
		}
		for _, l := range r.idle {
			l.conn.Close()
		}
	}
}

// CloseWhere closes all connections to some clusters, for example to suspended members.
func (p *Pool) CloseWhere(match func(clusterset.ClusterID) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for cluster, r := range p.remotes {
		if match(cluster) {
			for l := range r.links {
				l.conn.Close()
			}
		}
	}
}

// Close closes all connections, and opens no other.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.CloseWhere(func(clusterset.ClusterID) bool { return true })
}

// Reachable returns the clusters in use to which a connection was tried, with why the last attempt has failed; nil if there is a
// connection, or it has not failed.
func (p *Pool) Reachable() map[clusterset.ClusterID]error {
	p.mu.Lock()
	defer p.mu.Unlock()
	result := map[clusterset.ClusterID]error{}
	for cluster, r := range p.remotes {
		switch {
		case !r.wanted:
		case len(r.links) > 0:
			result[cluster] = nil
		case r.tried:
			result[cluster] = r.err
		}
	}
	return result
}

// choice says which connections get returns.
type choice int

const (
	anyLink choice = iota // an idle one, if there is one
	newLink               // none that is idle now
)

// get returns a connection to a gateway of a cluster, or waits for one. It prefers addresses other than avoid.
func (p *Pool) get(ctx context.Context, cluster clusterset.ClusterID, avoid string, which choice) (*link, error) {
	p.mu.Lock()
	r := p.remote(cluster)
	if which == anyLink {
		if l := r.take(avoid); l != nil {
			p.count(r)
			p.prewarm(r)
			p.mu.Unlock()
			return l, nil
		}
	}
	wait := make(chan result, 1)
	r.waiting = append(r.waiting, wait)
	if r.dialing < len(r.waiting) {
		p.dial(r, avoid)
	}
	p.mu.Unlock()
	select {
	case got := <-wait:
		return got.link, got.err
	case <-ctx.Done():
		p.mu.Lock()
		r.waiting = slices.DeleteFunc(r.waiting, func(w chan result) bool { return w == wait })
		p.mu.Unlock()
		if len(wait) > 0 {
			if got := <-wait; got.link != nil {
				p.put(got.link)
			}
		}
		return nil, context.Cause(ctx)
	}
}

// put takes a connection that can carry a stream.
func (p *Pool) put(l *link) {
	l.wait() // not under the pool's lock: a link locks itself before the pool
	p.mu.Lock()
	defer p.mu.Unlock()
	r := l.remote
	if _, there := r.links[l]; !there {
		if len(r.waiting) > r.dialing {
			r.fail(errLost)
		}
		return
	}
	if len(r.waiting) > 0 {
		r.waiting[0] <- result{link: l}
		r.waiting = r.waiting[1:]
		return
	}
	r.idle = append(r.idle, l)
	p.count(r)
	p.prewarm(r)
}

// count sets the metrics of a cluster's connections. The caller holds the lock.
func (p *Pool) count(r *remote) {
	p.Metrics.connections.WithLabelValues(string(r.cluster), "warm").Set(float64(len(r.idle)))
	p.Metrics.connections.WithLabelValues(string(r.cluster), "used").Set(float64(len(r.links) - len(r.idle)))
}

// remove says that a connection is closed.
func (p *Pool) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := l.remote
	delete(r.links, l)
	r.idle = slices.DeleteFunc(r.idle, func(other *link) bool { return other == l })
	p.count(r)
	p.prewarm(r)
}

// isSpare reports whether a connection that has been idle for a time is not needed.
func (p *Pool) isSpare(l *link, idle time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !l.remote.wanted || idle >= keepFor && len(l.remote.idle) > warm
}

// prewarm connects to a cluster in use if too few connections are idle. The caller holds the lock.
func (p *Pool) prewarm(r *remote) {
	if r.wanted && !p.closed && r.retry == nil && len(r.idle)+r.dialing-len(r.waiting) < warm {
		p.dial(r, "")
	}
}

// dial connects in the background. The caller holds the lock.
func (p *Pool) dial(r *remote, avoid string) {
	r.dialing++
	addresses := p.Addresses(r.cluster)
	if len(addresses) > 0 {
		r.next = (r.next + 1) % len(addresses)
		addresses = slices.Concat(addresses[r.next:], addresses[:r.next])
	}
	if i := slices.Index(addresses, avoid); i >= 0 {
		addresses = append(slices.Delete(addresses, i, i+1), avoid)
	}
	go func() {
		l, err := p.connect(r, addresses)
		p.mu.Lock()
		defer p.mu.Unlock()
		r.dialing--
		r.tried = true
		if r.err = err; err == nil {
			r.links[l] = struct{}{}
			p.count(r)
			if p.closed {
				l.conn.Close()
			}
			go l.read()
			go p.put(l)
			return
		}
		if len(r.waiting) > r.dialing {
			r.fail(err)
		}
		if r.retry == nil {
			r.retry = time.AfterFunc(retryAfter+rand.N(retryAfter), func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				r.retry = nil
				p.prewarm(r)
			})
		}
	}()
}

// connect connects to the first address that accepts.
func (p *Pool) connect(r *remote, addresses []string) (*link, error) {
	if len(addresses) == 0 {
		return nil, fmt.Errorf("cluster %s publishes no gateway address that this cluster may use", r.cluster)
	}
	var failed []error
	for _, address := range addresses {
		conn, err := p.handshake(r.cluster, address)
		if err == nil {
			return &link{pool: p, remote: r, conn: conn, address: address, expires: time.Now().Add(maxAge - rand.N(maxAge/10))}, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

func (p *Pool) handshake(cluster clusterset.ClusterID, address string) (*tunnel.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*dialTimeout)
	defer cancel()
	var permit func(netip.Addr) error
	if p.Permit != nil {
		permit = func(ip netip.Addr) error { return p.Permit(cluster, ip) }
	}
	began := time.Now()
	tcp, err := tunnel.DialTCP(ctx, address, dialTimeout, permit)
	if err != nil {
		return nil, fmt.Errorf("gateway %s of cluster %s: %w", address, cluster, err)
	}
	if _, err := netip.ParseAddrPort(address); err == nil { // no DNS name was resolved
		observe(p.Metrics.rtt, cluster, time.Since(began))
	}
	conn, err := tunnel.Client(ctx, tcp, p.Config(cluster), p.Buffers)
	if err != nil {
		return nil, fmt.Errorf("gateway %s of cluster %s: %w", address, cluster, err)
	}
	return conn, nil
}
