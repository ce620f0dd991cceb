// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
)

// TestFinBehindFullConnection: while FIN waits for a gateway that does not read, the stream takes what that gateway sends. Otherwise two
// gateways could wait for each other.
//
// spec: G6
func TestFinBehindFullConnection(t *testing.T) {
	t.Parallel()
	both := trusts(t, "east", "west")
	full := make(chan struct{})
	listener := serve(t, func(tcp *net.TCPConn) {
		if _, err := tunnel.Server(context.Background(), tcp, both["west"].Server(), tunnel.NewBuffers(1)); err == nil {
			_, _ = tcp.Read(make([]byte, 1))
			close(full)
		}
	})
	conn := peer(t, both["east"], listener.Addr().String())
	go conn.SendFrames(make([]byte, 64<<20)) // it fails when the test ends
	<-full
	client := serve(t, func(*net.TCPConn) {})
	local, err := tunnel.NewLocal(dial(t, client.Addr().String()), tunnel.NewBuffers(1))
	check.Must(t, err)
	s := &stream{conn: conn, number: 1, local: local, state: open, over: make(chan struct{})}
	go s.sendFin()
	taken := make(chan error, 1)
	go func() {
		for !s.isSending() {
			runtime.Gosched()
		}
		taken <- s.receive(tunnel.Frame{Header: wire.Header{Type: wire.TypeFin, Stream: 1}})
	}()
	select {
	case err := <-taken:
		check.Must(t, err)
	case <-deadlineOf(t).Done():
		t.Error("the stream does not take FIN of the other gateway while its own waits")
	}
}

// isSending reports whether FIN is being sent.
func (s *stream) isSending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.finSent && !s.finWritten
}

// deadlineOf returns a context that ends after deadline.
func deadlineOf(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// TestCloseWhileBackendDoesNotRead: a connection that is closed, for example because its cluster is suspended, does not wait for a backend
// that does not read.
//
// spec: A4, G12
func TestCloseWhileBackendDoesNotRead(t *testing.T) {
	t.Parallel()
	accepted := make(chan *net.TCPConn, 1)
	_, e, address := pair(t, func(conn *net.TCPConn) { accepted <- conn })
	client := dial(t, address)
	backend := <-accepted
	defer backend.Close()
	fill(client, make([]byte, 64<<10), 500*time.Millisecond, 256<<20)
	e.CloseWhere(func(clusterset.ClusterID) bool { return true })
	ctx := deadlineOf(t)
	e.Shutdown(ctx)
	if ctx.Err() != nil {
		t.Error("the exporter waits for a backend that does not read")
	}
}
