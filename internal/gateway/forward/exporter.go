// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/tombolo-mcs/tombolo/internal/gateway/balance"
	"github.com/tombolo-mcs/tombolo/internal/gateway/budget"
	"github.com/tombolo-mcs/tombolo/internal/gateway/handshakes"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const (
	// idleTimeout is the time without a frame after which a connection without a stream is closed: dialers send PING every 15 s.
	idleTimeout = time.Minute
	// maxPings is the number of PINGs without an OPEN after which a connection is closed.
	maxPings = 100
	// connectTimeout is the time for an endpoint to accept. All endpoints of a stream have connectTimeouts times that.
	connectTimeout, connectTimeouts = 3 * time.Second, 5
)

// Backends says where the streams of other clusters lead.
type Backends interface {
	// Endpoints returns the available endpoints for a stream of a cluster, or why it is refused.
	Endpoints(cluster clusterset.ClusterID, open wire.Open) (balance.Endpoints, *wire.Refusal)
}

// Exporter connects the streams of other clusters to backends.
type Exporter struct {
	Backends Backends
	// Permissions is nil if every stream is allowed.
	Permissions *Permissions
	Buffers     *tunnel.Buffers
	Metrics     *Metrics
	// Limits bound the streams, Connections the connections.
	Limits, Connections *budget.Limits
	Access              AccessLog // nil for none
	// Refused is called with each stream that is refused; nil for none. The request is empty if the OPEN was malformed.
	Refused func(cluster clusterset.ClusterID, request wire.Open, refusal *wire.Refusal)

	now            func() time.Time // for tests; nil means time.Now
	connectTimeout time.Duration    // for tests; 0 means the constant

	balancer balance.Balancer
	mu       sync.Mutex
	conns    map[*accepted]struct{}
	draining bool
	drained  func() // called when the last connection is closed
}

// Serve serves the streams of a connection, one after the other, until the connection is closed. It returns at once.
func (e *Exporter) Serve(ctx context.Context, conn *tunnel.Conn) error {
	release, err := e.Connections.Acquire(string(conn.Cluster))
	if err != nil {
		conn.Release()
		return err
	}
	l, err := e.Buffers.Loops.Next()
	if err != nil {
		release()
		conn.Release()
		return err
	}
	c := &accepted{exporter: e, conn: conn, loop: l, ctx: ctx, release: release}
	c.expires = c.now().Add(maxAcceptedAge)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conns == nil {
		e.conns = map[*accepted]struct{}{}
	}
	e.conns[c] = struct{}{}
	l.Do(c.attach)
	return nil
}

func (e *Exporter) remove(c *accepted) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.conns, c)
	if len(e.conns) == 0 && e.drained != nil {
		e.drained()
	}
}

// Shutdown asks the dialers to open no further stream here, and waits until all connections are closed, or until ctx is done; then it
// closes them.
func (e *Exporter) Shutdown(ctx context.Context) {
	drained, cancel := context.WithCancel(ctx)
	defer cancel()
	e.mu.Lock()
	e.draining, e.drained = true, cancel
	for c := range e.conns {
		c.loop.Do(c.goAway)
	}
	if len(e.conns) == 0 {
		cancel()
	}
	e.mu.Unlock()
	<-drained.Done()
	e.closeAll()
}

func (e *Exporter) isDraining() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.draining
}

// admit returns the endpoints for a stream in the order in which to try them, or why it is refused. release is to be called at its end. deny is
// called if it is no longer allowed, perhaps after its end.
func (e *Exporter) admit(
	cluster clusterset.ClusterID, request wire.Open, deny func(*wire.Refusal),
) (endpoints balance.Endpoints, release func(), refusal *wire.Refusal) {
	if e.isDraining() {
		return endpoints, nil, &wire.Refusal{Code: wire.CodeShutdown, Text: "the gateway shuts down"}
	}
	// The rules decide before endpoints are looked up: a client that they deny does not learn what exists.
	unregister, refusal := e.Permissions.admit(cluster, request, deny)
	if refusal != nil {
		return endpoints, nil, refusal
	}
	endpoints, refusal = e.Backends.Endpoints(cluster, request)
	if refusal != nil {
		unregister()
		return endpoints, nil, refusal
	}
	if len(endpoints.Addresses) == 0 {
		unregister()
		return endpoints, nil, &wire.Refusal{Code: wire.CodeNoEndpoint, Text: "the service has no available endpoint"}
	}
	free, err := e.Limits.Acquire(string(cluster))
	if err != nil {
		unregister()
		return endpoints, nil, &wire.Refusal{Code: wire.CodeLimit, Text: err.Error()}
	}
	endpoints.Addresses = e.balancer.Order(endpoints, cluster, request.Client)
	return endpoints, func() { free(); unregister() }, nil
}

// maxGreetings and maxGreetingsEach bound the connections whose peer is verified and has not sent HELLO, in total and of one cluster.
const maxGreetings, maxGreetingsEach = 4096, 2048

// Accept serves the gateways that connect to a listener until it is closed. Peers that are no gateways of members, or send nothing, keep no
// other gateway out.
func (e *Exporter) Accept(ctx context.Context, listener *net.TCPListener, config *tls.Config) error {
	log := logr.FromContextOrDiscard(ctx).V(1)
	failed := func(tcp *net.TCPConn, err error) {
		e.Metrics.handshakesFailed.Inc()
		if !log.Enabled() { // there may be many
			return
		}
		log.Info("a peer has not completed the handshake", "peer", tcp.RemoteAddr().String(), "error", err.Error())
	}
	greetings := &budget.Limits{Total: maxGreetings, Each: maxGreetingsEach}
	acceptor := &handshakes.Acceptor{Closed: failed, Begin: func(tcp *net.TCPConn, handshake *handshakes.Handshake) {
		defer handshake.End()
		conn, err := e.handshake(ctx, tcp, config, handshake, greetings)
		if err != nil {
			failed(tcp, err)
			return
		}
		if err := e.Serve(ctx, conn); err != nil {
			log.Info("a connection has ended", "cluster", conn.Cluster, "reason", err.Error())
		}
	}}
	return acceptor.Accept(ctx, listener)
}

func (e *Exporter) handshake(
	ctx context.Context, tcp *net.TCPConn, config *tls.Config, handshake *handshakes.Handshake, greetings *budget.Limits,
) (*tunnel.Conn, error) {
	var release func()
	conn, err := tunnel.Server(ctx, tcp, config, e.Buffers, tunnel.Steps{
		Wait: handshake.Wait, Continue: handshake.Continue,
		Verified: func(cluster clusterset.ClusterID) error {
			handshake.End()
			var err error
			release, err = greetings.Acquire(string(cluster))
			return err
		},
	})
	if release != nil {
		release()
	}
	return conn, err
}

// report calls Refused, if it is set.
func (e *Exporter) report(cluster clusterset.ClusterID, request wire.Open, refusal *wire.Refusal) {
	if e.Refused != nil {
		e.Refused(cluster, request, refusal)
	}
}
