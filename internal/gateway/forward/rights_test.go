// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/budget"
	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// rightsOf returns the trust of east and west. The certificate of one of them expires within a day.
func rightsOf(t *testing.T, short clusterset.ClusterID) map[clusterset.ClusterID]side {
	t.Helper()
	pools, result := map[clusterset.ClusterID]*x509.CertPool{}, map[clusterset.ClusterID]side{}
	for _, id := range []clusterset.ClusterID{"east", "west"} {
		issued := time.Now()
		if id == short {
			issued = issued.Add(-identity.LeafLifetime + 24*time.Hour)
		}
		authority, leaf := issue(t, id, issued)
		pools[id] = poolOf(authority)
		result[id] = sideOf(identity.Trust{
			Self: identity.Name{ClusterSet: "set", Cluster: id}, Leaf: func() *tls.Certificate { return leaf }, Verified: identity.NewVerified(),
			Authorities: func(other clusterset.ClusterID) *x509.CertPool { return pools[other] },
		})
	}
	return result
}

// issue returns a new authority and a certificate of a cluster.
func issue(t *testing.T, id clusterset.ClusterID, at time.Time) (identity.Authority, *tls.Certificate) {
	t.Helper()
	authority, err := identity.NewAuthority(id, at)
	check.Must(t, err)
	certificate, key, err := authority.Issue(identity.Name{ClusterSet: "set", Cluster: id}, at)
	check.Must(t, err)
	leaf, err := identity.DecodeLeaf(certificate, key)
	check.Must(t, err)
	return authority, leaf
}

func poolOf(authorities ...identity.Authority) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, authority := range authorities {
		pool.AddCert(authority.Certificate)
	}
	return pool
}

// right is what gives a gateway the right to open or accept streams, and how it ends.
type right struct {
	expires clusterset.ClusterID // whose certificate is valid for a day
	end     func(t *testing.T, of side, other clusterset.ClusterID) (repair func())
	revokes bool // open streams end too
}

func rights() map[string]right {
	expire := func(_ *testing.T, of side, _ clusterset.ClusterID) func() { return of.jump(48 * time.Hour) }
	return map[string]right{
		"the certificate of the importing gateway expires": {"east", expire, false},
		"the certificate of the exporting gateway expires": {"west", expire, false},
		"the authority of the other cluster is replaced": {"", func(t *testing.T, of side, other clusterset.ClusterID) func() {
			t.Helper()
			return of.publish(t, other)
		}, true},
		// The gateway has no RemoteGateway: the member is suspended or deleted, or publishes what its Member does not allow.
		"the other member is not trusted": {"", func(_ *testing.T, of side, _ clusterset.ClusterID) func() {
			of.trusted.Store(false)
			return func() { of.trusted.Store(true) }
		}, true},
	}
}

// sides are both gateways, each with the cluster of the other one. A right ends for one of them only, so that the other does not help.
var sides = map[string][2]clusterset.ClusterID{
	"the importing gateway": {"east", "west"},
	"the exporting gateway": {"west", "east"},
}

// eachRight runs a test for each right and side.
func eachRight(t *testing.T, test func(t *testing.T, both map[clusterset.ClusterID]side, of, other clusterset.ClusterID, r right)) {
	t.Helper()
	for name, r := range rights() {
		for at, ids := range sides {
			t.Run(name+", as "+at+" sees", func(t *testing.T) {
				t.Parallel()
				test(t, rightsOf(t, r.expires), ids[0], ids[1], r)
			})
		}
	}
}

// idle waits until the pool has a connection that no stream uses.
func (p *Pool) idle(t *testing.T) *link {
	t.Helper()
	for end := time.Now().Add(deadline); time.Now().Before(end); runtime.Gosched() {
		p.mu.Lock()
		idle := slices.Clone(p.remote("west").idle)
		p.mu.Unlock()
		if len(idle) > 0 {
			return idle[0]
		}
	}
	t.Fatal("no connection is idle")
	return nil
}

// A connection that is open, and that no stream uses, opens none if one of the gateways would not make a new connection now: no request
// reaches a backend. Open streams continue. When the right is back, so are the clients.
//
// spec: G5
func TestRightOfEachStream(t *testing.T) {
	t.Parallel()
	eachRight(t, func(t *testing.T, both map[clusterset.ClusterID]side, of, other clusterset.ClusterID, r right) {
		t.Helper()
		var reached atomic.Int32
		listener := serve(t, func(conn *net.TCPConn) {
			reached.Add(1)
			echo(conn)
		})
		_, gateway := exporter(t, both["west"].Trust, listener.Addr())
		i, address := importer(t, both["east"].Trust, gateway)
		open := dial(t, address)
		say(t, open)
		got, err := request(t, address)
		check.Must(t, err)
		check.Equal(t, "answer", "request", got)
		i.Pool.idle(t)
		repair := r.end(t, both[of], other)
		if got, err := request(t, address); !isReset(err) {
			t.Errorf("a new client got %q, %v, want a reset", got, err)
		}
		check.Equal(t, "requests that have reached the backend", int32(2), reached.Load())
		say(t, open)
		repair()
		if got, err := request(t, address); got != "request" || err != nil {
			t.Errorf("after the repair, a client got %q, %v", got, err)
		}
	})
}

// CloseUntrusted ends the open streams of a peer that is no longer trusted, and none because of the time.
//
// spec: G5
func TestCloseUntrusted(t *testing.T) {
	t.Parallel()
	eachRight(t, func(t *testing.T, both map[clusterset.ClusterID]side, of, other clusterset.ClusterID, r right) {
		t.Helper()
		listener := serve(t, echo)
		e, gateway := exporter(t, both["west"].Trust, listener.Addr())
		i, address := importer(t, both["east"].Trust, gateway)
		client := dial(t, address)
		say(t, client)
		r.end(t, both[of], other)
		i.Pool.CloseUntrusted()
		e.CloseUntrusted()
		if !r.revokes {
			say(t, client)
			both[of].trusted.Store(false) // also with an expired certificate
			i.Pool.CloseUntrusted()
			e.CloseUntrusted()
		}
		_, err := readAll(t, client)
		checkReset(t, "the client", err)
	})
}

// If one of the authorities of a cluster is removed, only the connections end that it had verified.
//
// spec: G5
func TestRemovedAuthority(t *testing.T) {
	t.Parallel()
	for at, ids := range sides {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			both, listener := rightsOf(t, ""), serve(t, echo)
			of, other := both[ids[0]], ids[1]
			kept, keptLeaf := issue(t, other, time.Now())
			removed, removedLeaf := issue(t, other, time.Now())
			of.pool.Store(poolOf(kept, removed))
			var leaf atomic.Pointer[tls.Certificate]
			changed := both[other].Trust
			changed.Leaf = leaf.Load
			trust := map[clusterset.ClusterID]identity.Trust{ids[0]: of.Trust, other: changed}
			e, gateway := exporter(t, trust["west"], listener.Addr())
			i, address := importer(t, trust["east"], gateway)
			leaf.Store(removedLeaf)
			first := dial(t, address)
			say(t, first)
			leaf.Store(keptLeaf)
			second := dial(t, address) // the only connection is in use
			say(t, second)
			of.pool.Store(poolOf(kept))
			i.Pool.CloseUntrusted()
			e.CloseUntrusted()
			_, err := readAll(t, first)
			checkReset(t, "the client whose connection the removed authority has verified", err)
			say(t, second)
		})
	}
}

// A right ends after TLS and before HELLO, without an event: no stream is opened on the connection, and no byte of a client is sent.
//
// spec: G5
func TestRightAfterHandshake(t *testing.T) {
	t.Parallel()
	hello := wire.Append(nil, wire.TypeHello, 0, wire.Hello{Oldest: wire.Version, Newest: wire.Version}.Encode())
	eachRight(t, func(t *testing.T, both map[clusterset.ClusterID]side, of, other clusterset.ClusterID, r right) {
		t.Helper()
		var reached atomic.Int32
		listener := serve(t, func(conn *net.TCPConn) {
			reached.Add(1)
			echo(conn)
		})
		var waiting *tls.Conn
		if of == "west" {
			_, gateway := exporter(t, both["west"].Trust, listener.Addr())
			waiting = tls.Client(dial(t, gateway), both["east"].Client("west"))
			check.Must(t, waiting.Handshake())
		} else {
			accepted := make(chan *net.TCPConn, 1)
			gateway := serve(t, func(conn *net.TCPConn) { accepted <- conn })
			_, address := importerWith(t, func(i *Importer) { i.openTimeout = 10 * time.Second }, both["east"].Trust, gateway.Addr().String())
			client := dial(t, address)
			_, err := io.WriteString(client, "secret")
			check.Must(t, err)
			waiting = tls.Server(<-accepted, both["west"].Server())
			check.Must(t, waiting.Handshake())
		}
		_, err := io.ReadFull(waiting, make([]byte, len(hello))) // it has accepted the certificate
		check.Must(t, err)
		r.end(t, both[of], other)
		open := wire.Append(nil, wire.TypeOpen, 1, web.Encode())
		if of == "east" {
			open = nil
		}
		_, err = waiting.Write(joined(hello, open))
		check.Must(t, err)
		check.Must(t, waiting.SetReadDeadline(time.Now().Add(deadline)))
		answer, _ := io.ReadAll(waiting)
		if kind := wire.TypeRefused; len(answer) > 0 && wire.Type(answer[0]) != kind {
			t.Errorf("the gateway has sent %q", answer)
		}
		check.Equal(t, "connections to the backend", int32(0), reached.Load())
	})
}

// A connection carries no further stream after its maximal age, whichever side counts it. No stream ends because of it, and no client
// notices it.
//
// spec: G5, G7
func TestMaximalAge(t *testing.T) {
	t.Parallel()
	for at, expire := range map[string]func(*link, *atomic.Int64){
		"the importing gateway": func(l *link, _ *atomic.Int64) {
			l.pool.mu.Lock() // the pool reads it under its lock
			defer l.pool.mu.Unlock()
			l.expires = time.Now()
		},
		"the exporting gateway": func(_ *link, ahead *atomic.Int64) { ahead.Add(int64(maxAcceptedAge)) },
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			var ahead atomic.Int64
			var connections atomic.Int32
			listener, both := serve(t, echo), trusts(t, "east", "west")
			_, gateway := exporterWith(t, func(e *Exporter) {
				e.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			}, both["west"], listener.Addr())
			between := serve(t, func(conn *net.TCPConn) {
				connections.Add(1)
				relay(conn, gateway)
			})
			i, address := importer(t, both["east"], between.Addr().String())
			open := dial(t, address)
			say(t, open)
			_, err := request(t, address)
			check.Must(t, err)
			expire(i.Pool.idle(t), &ahead)
			got, err := request(t, address)
			if got != "request" || err != nil {
				t.Errorf("the next client got %q, %v", got, err)
			}
			check.Equal(t, "connections between the gateways", int32(3), connections.Load())
			say(t, open)
		})
	}
}

// relay connects a connection with an address.
func relay(conn *net.TCPConn, address string) {
	defer conn.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	go func() { _, _ = io.Copy(conn, to); conn.Close() }()
	_, _ = io.Copy(to, conn)
}

// A peer that keeps a connection alive beyond its maximal age gets no stream on it, and GOAWAY with the answer to a PING.
//
// spec: G5, G6
func TestAgeOfHostilePeer(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	listener, both := serve(t, echo), trusts(t, "east", "west")
	_, gateway := exporterWith(t, func(e *Exporter) {
		e.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}, both["west"], listener.Addr())
	conn := peer(t, both["east"], gateway)
	ping := wire.Append(nil, wire.TypePing, 0, make([]byte, wire.PingLength))
	check.Must(t, conn.SendFrames(ping))
	pong, err := conn.Next() // the connection is accepted
	check.Must(t, err)
	check.Equal(t, "answer", wire.TypePong, pong.Type)
	ahead.Store(int64(maxAcceptedAge))
	check.Must(t, conn.SendFrames(joined(ping, wire.Append(nil, wire.TypeOpen, 1, web.Encode()))))
	check.Equal(t, "answers", "GOAWAY PONG REFUSED Reconnect", answers(t, conn))
}

// A connection that is complete when its member is suspended, and that nobody has counted yet, is closed. spec: G5
func TestSuspendedWhileAccepted(t *testing.T) {
	t.Parallel()
	both := rightsOf(t, "")
	accepted := make(chan *net.TCPConn, 1)
	listener := serve(t, func(conn *net.TCPConn) { accepted <- conn })
	go func() {
		conn, err := tunnel.Server(context.Background(), <-accepted, both["west"].Server(), tunnel.NewBuffers(1), tunnel.Steps{})
		if err != nil {
			t.Error(err)
			return
		}
		both["west"].trusted.Store(false)
		e := &Exporter{Buffers: tunnel.NewBuffers(1), Metrics: NewMetrics("export"), Connections: &budget.Limits{Total: 1, Each: 1}}
		_ = e.Serve(context.Background(), conn)
	}()
	conn := peer(t, both["east"].Trust, listener.Addr().String())
	check.Equal(t, "answers", "", answers(t, conn))
}
