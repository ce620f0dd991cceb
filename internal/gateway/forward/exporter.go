// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/tombolo-mcs/tombolo/internal/gateway/balance"
	"github.com/tombolo-mcs/tombolo/internal/gateway/budget"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const (
	// idleTimeout is the time without a frame after which a connection without a stream is closed: dialers send PING every 15 s.
	idleTimeout = time.Minute
	// maxPings is the number of PINGs without an OPEN after which a connection is closed.
	maxPings = 100
	// connectTimeout is the time for a backend to accept, of one endpoint and of all.
	connectTimeout, connectTimeoutOfAll = 3 * time.Second, 15 * time.Second
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

	now func() time.Time // for tests; nil means time.Now

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

// connected is a connection to a backend. release is called at its end; nil if there is no connection.
type connected struct {
	backend *net.TCPConn
	release func()
}

func (c connected) close() {
	if c.release != nil {
		c.backend.Close()
		c.release()
	}
}

// connect returns a connection to a backend, or why there is none. deny is called if the stream is no longer allowed, perhaps after its end.
func (e *Exporter) connect(ctx context.Context, cluster clusterset.ClusterID, request wire.Open, deny func(*wire.Refusal)) (connected, *wire.Refusal) {
	if e.isDraining() {
		return connected{}, &wire.Refusal{Code: wire.CodeShutdown, Text: "the gateway shuts down"}
	}
	// The rules decide before endpoints are looked up: a client that they deny does not learn what exists.
	unregister, refusal := e.Permissions.admit(cluster, request, deny)
	if refusal != nil {
		return connected{}, refusal
	}
	endpoints, refusal := e.Backends.Endpoints(cluster, request)
	if refusal != nil {
		unregister()
		return connected{}, refusal
	}
	freeStream, err := e.Limits.Acquire(string(cluster))
	if err != nil {
		unregister()
		return connected{}, &wire.Refusal{Code: wire.CodeLimit, Text: err.Error()}
	}
	conn, leave, refusal := e.dial(ctx, e.balancer.Order(endpoints, cluster, request.Client), endpoints.Permit)
	if refusal != nil {
		freeStream()
		unregister()
		return connected{}, refusal
	}
	opened := e.Metrics.opened(cluster)
	return connected{conn, func() { leave(); freeStream(); unregister(); opened() }}, nil
}

// dial connects to the first endpoint that is permitted and accepts. The second result is to be called at the end of the connection.
func (e *Exporter) dial(ctx context.Context, endpoints []netip.AddrPort, permit func(netip.AddrPort) error) (*net.TCPConn, func(), *wire.Refusal) {
	if len(endpoints) == 0 {
		return nil, nil, &wire.Refusal{Code: wire.CodeNoEndpoint, Text: "the service has no available endpoint"}
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeoutOfAll)
	defer cancel()
	for _, endpoint := range endpoints {
		if permit != nil {
			if err := permit(endpoint); err != nil {
				logr.FromContextOrDiscard(ctx).V(1).Info("an endpoint is left out", "reason", err.Error())
				continue
			}
		}
		leave := e.balancer.Enter(endpoint)
		conn, err := tunnel.DialTCP(ctx, endpoint.String(), connectTimeout, nil)
		if err == nil {
			return conn, leave, nil
		}
		leave()
		logr.FromContextOrDiscard(ctx).V(1).Info("an endpoint does not accept", "error", err.Error())
	}
	// No address of this cluster is sent to another one (W2).
	return nil, nil, &wire.Refusal{Code: wire.CodeUnreachable, Text: fmt.Sprintf("none of %d endpoints has accepted the connection", len(endpoints))}
}
