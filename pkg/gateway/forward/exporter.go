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

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
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
	Endpoints(cluster clusterset.ClusterID, open wire.Open) (Endpoints, *wire.Refusal)
}

// Exporter connects the streams of other clusters to backends.
type Exporter struct {
	Backends Backends
	// Permissions is nil if every stream is allowed.
	Permissions *Permissions
	Buffers     *tunnel.Buffers
	Metrics     *Metrics
	// Limits bound the streams, Connections the connections.
	Limits, Connections *Limits
	Access              AccessLog // nil for none

	balancer balancer
	mu       sync.Mutex
	conns    map[*tunnel.Conn]struct{}
	draining bool
	drained  func() // called when the last connection is closed
}

// Serve serves the streams of a connection, one after the other, until the connection is closed. The error says why: io.EOF if the peer
// has closed it, a *wire.Refusal if a stream was refused.
func (e *Exporter) Serve(ctx context.Context, conn *tunnel.Conn) error {
	release, err := e.Connections.acquire(string(conn.Cluster))
	if err != nil {
		conn.Release()
		return err
	}
	defer release()
	e.add(conn)
	defer e.remove(conn)
	c := &accepted{exporter: e, conn: conn}
	if err = conn.SetReadDeadline(time.Now().Add(idleTimeout)); err == nil {
		err = handle(conn, func(frame tunnel.Frame) error { return c.receive(ctx, frame) })
	}
	return c.close(err)
}

func (e *Exporter) add(conn *tunnel.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conns == nil {
		e.conns = map[*tunnel.Conn]struct{}{}
	}
	e.conns[conn] = struct{}{}
	if e.draining {
		go goAway(conn)
	}
}

func (e *Exporter) remove(conn *tunnel.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.conns, conn)
	if len(e.conns) == 0 && e.drained != nil {
		e.drained()
	}
}

// goAway asks a dialer to open no further stream.
func goAway(conn *tunnel.Conn) {
	if conn.Send(wire.TypeGoaway, 0, nil) != nil {
		conn.Close()
	}
}

// Shutdown asks the dialers to open no further stream here, and waits until all connections are closed, or until ctx is done; then it
// closes them.
func (e *Exporter) Shutdown(ctx context.Context) {
	drained, cancel := context.WithCancel(ctx)
	defer cancel()
	e.mu.Lock()
	e.draining, e.drained = true, cancel
	for conn := range e.conns {
		go goAway(conn)
	}
	if len(e.conns) == 0 {
		cancel()
	}
	e.mu.Unlock()
	<-drained.Done()
	e.CloseWhere(func(clusterset.ClusterID) bool { return true })
}

// CloseWhere closes the connections of some clusters, for example of suspended members.
func (e *Exporter) CloseWhere(match func(clusterset.ClusterID) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for conn := range e.conns {
		if match(conn.Cluster) {
			conn.Close()
		}
	}
}

func (e *Exporter) isDraining() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.draining
}

// accepted is a connection that another gateway has opened. Its fields belong to the goroutine that reads from it.
type accepted struct {
	exporter *Exporter
	conn     *tunnel.Conn
	number   uint32
	current  *stream // the last one
	pings    int
}

// receive handles a frame. After an error, the connection is closed.
func (c *accepted) receive(ctx context.Context, frame tunnel.Frame) error {
	idle := c.current == nil || c.current.isDone()
	switch {
	case frame.Type == wire.TypePing && idle && c.pings < maxPings:
		c.pings++
		if err := c.conn.SetReadDeadline(time.Now().Add(idleTimeout)); err != nil {
			return err
		}
		return c.conn.Send(wire.TypePong, 0, frame.Payload)
	case frame.Type == wire.TypeOpen && idle && frame.Stream == c.number+1:
		c.number, c.pings = frame.Stream, 0
		return c.open(ctx, frame)
	case frame.Stream != c.number || c.current == nil:
	case frame.Type == wire.TypeReset:
		return errReset(frame)
	case idle:
	case frame.Type == wire.TypeData || frame.Type == wire.TypeFin:
		if err := c.current.receive(frame); err != nil {
			return err
		}
		return c.current.finish()
	}
	return wire.Violation("%s of stream %d is not permitted now", frame.Type, frame.Stream)
}

// open connects to a backend, and starts to copy from it.
func (c *accepted) open(ctx context.Context, frame tunnel.Frame) error {
	e := c.exporter
	if err := c.conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	request, err := wire.DecodeOpen(frame.Payload)
	record := e.Access.begin(Exporting, c.conn.Cluster, request)
	var to connected
	refusal := refusalOf(err)
	if refusal == nil {
		to, refusal = e.connect(ctx, c.conn, request)
	}
	if refusal != nil {
		record.finish(nil, Result(refusal.Code.String()))
		e.Metrics.refused(c.conn.Cluster, refusal.Code)
		if err := c.conn.Send(wire.TypeRefused, c.number, refusal.Encode()); err != nil {
			return err
		}
		return refusal
	}
	s := &stream{
		local: to.backend, bytes: record.counting(e.Metrics.bytes(c.conn.Cluster)), conn: c.conn, number: c.number, state: open, over: make(chan struct{}),
		unregister: to.unregister,
	}
	c.current = s
	c.conn.SetUnblock(to.backend.StopWriting)
	if err := c.conn.Send(wire.TypeOpened, c.number, nil); err != nil {
		record.finish(to.backend.RemoteAddr(), ResultConnectionLost)
		to.release()
		return err
	}
	go func() {
		defer to.release()
		s.send()
		if s.finish() != nil {
			s.conn.Close()
		}
		<-s.over
		record.finish(to.backend.RemoteAddr(), s.result)
	}()
	return nil
}

// connected is a connection to a backend.
type connected struct {
	backend *tunnel.Local
	// unregister is called when the stream has ended, and release when nothing is left of it; release calls unregister.
	unregister, release func()
}

// connect returns a connection to a backend, or why there is none.
func (e *Exporter) connect(ctx context.Context, from *tunnel.Conn, request wire.Open) (connected, *wire.Refusal) {
	cluster := from.Cluster
	if e.isDraining() {
		return connected{}, &wire.Refusal{Code: wire.CodeShutdown, Text: "the gateway shuts down"}
	}
	endpoints, refusal := e.Backends.Endpoints(cluster, request)
	if refusal != nil {
		return connected{}, refusal
	}
	unregister, refusal := e.Permissions.admit(cluster, request, func(*wire.Refusal) { from.Close() })
	if refusal != nil {
		return connected{}, refusal
	}
	freeStream, err := e.Limits.acquire(string(cluster))
	if err != nil {
		unregister()
		return connected{}, &wire.Refusal{Code: wire.CodeLimit, Text: err.Error()}
	}
	free := func() { freeStream(); unregister() }
	conn, leave, refusal := e.dial(ctx, e.balancer.order(endpoints, cluster, request.Client))
	if refusal != nil {
		free()
		return connected{}, refusal
	}
	opened := e.Metrics.opened(cluster)
	local, err := tunnel.NewLocal(conn, e.Buffers)
	release := func() { leave(); free(); opened() }
	if err != nil {
		conn.Close()
		release()
		return connected{}, &wire.Refusal{Code: wire.CodeInternal, Text: "the connection to the endpoint cannot be used"}
	}
	return connected{local, unregister, release}, nil
}

// dial connects to the first endpoint that accepts. The second result is to be called at the end of the connection.
func (e *Exporter) dial(ctx context.Context, endpoints []netip.AddrPort) (*net.TCPConn, func(), *wire.Refusal) {
	if len(endpoints) == 0 {
		return nil, nil, &wire.Refusal{Code: wire.CodeNoEndpoint, Text: "the service has no available endpoint"}
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeoutOfAll)
	defer cancel()
	for _, endpoint := range endpoints {
		leave := e.balancer.enter(endpoint)
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

// close ends the current stream and the connection.
func (c *accepted) close(err error) error {
	if c.current != nil {
		c.current.mu.Lock()
		c.current.abort(resultOf(err))
		c.current.mu.Unlock()
	}
	if refusalOf(err) != nil {
		c.conn.Finish()
	} else {
		c.conn.Release()
	}
	return err
}
