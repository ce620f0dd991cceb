// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/pool"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const dialTimeout = 5 * time.Second

// dial connects to an address, and gives the connection to a client that waits.
func (p *Pool) dial(r *remote, d pool.Dial) {
	conn, err := p.connect(r.cluster, d)
	var events *loop.Loop
	if err == nil {
		events, err = p.Buffers.Loops.Next()
	}
	if err != nil {
		err = fmt.Errorf("gateway %s of cluster %s: %w", d.Address, r.cluster, err)
		p.update(r, func() { r.plan.Failed(d, err, time.Now()) })
		return
	}
	l := &link{pool: p, remote: r, conn: conn, address: d.Address, loop: events, dial: d, expires: time.Now().Add(maxAge - rand.N(maxAge/10))}
	l.proven.Store(d.Verify)
	p.update(r, func() {
		r.plan.Connected(d, time.Now())
		r.links[l] = struct{}{}
		l.loop.Do(l.attach)
		p.give(l) // its client uses it later than attach
	})
}

// connect makes a connection, and verifies it if that is planned.
func (p *Pool) connect(cluster clusterset.ClusterID, d pool.Dial) (*tunnel.Conn, error) {
	conn, err := p.handshake(cluster, d.Address)
	if err != nil || !d.Verify {
		return conn, err
	}
	if err := p.verify(conn); err != nil {
		conn.Release()
		return nil, err
	}
	return conn, nil
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
		return nil, err
	}
	if _, err := netip.ParseAddrPort(address); err == nil { // no DNS name was resolved
		observe(p.Metrics.rtt, cluster, time.Since(began))
	}
	return tunnel.Client(ctx, tcp, p.Config(cluster), p.Buffers)
}

// verify waits until the other gateway has answered a PING. A gateway that is at its limit, or shuts down, accepts connections and closes
// them.
func (p *Pool) verify(conn *tunnel.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(pongTimeout)); err != nil {
		return err
	}
	if err := conn.Send(wire.TypePing, 0, make([]byte, wire.PingLength)); err != nil {
		return err
	}
	frame, _, err := conn.Next()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errLost, err)
	case frame.Type == wire.TypeGoaway:
		return errGoaway
	case frame.Type != wire.TypePong:
		return wire.Violation("%s before PONG", frame.Type)
	}
	return conn.SetDeadline(time.Time{})
}
