// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"

	"github.com/tombolo-mcs/tombolo/pkg/gateway/tunnel"
)

// maxHandshakes is the number of connections whose peer is not known yet.
const maxHandshakes = 256

// Accept serves the gateways that connect to a listener until it is closed. If too many handshakes are not complete, it closes the
// oldest one, so that peers that do not complete them keep no other gateway out.
func (e *Exporter) Accept(ctx context.Context, listener *net.TCPListener, config *tls.Config) {
	var pending handshakes
	pause := rate.NewLimiter(10, 1)
	for {
		tcp, err := listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files, for example
			_ = pause.Wait(ctx)
			continue
		}
		done := pending.add(tcp)
		go func() {
			conn, err := e.handshake(ctx, tcp, config)
			done()
			if err != nil {
				e.Metrics.handshakesFailed.Inc()
				logr.FromContextOrDiscard(ctx).V(1).Info("a peer has not completed the handshake", "peer", tcp.RemoteAddr().String(), "error", err.Error())
				return
			}
			if err := e.Serve(ctx, conn); err != nil {
				logr.FromContextOrDiscard(ctx).V(1).Info("a connection has ended", "cluster", conn.Cluster, "reason", err.Error())
			}
		}()
	}
}

func (e *Exporter) handshake(ctx context.Context, tcp *net.TCPConn, config *tls.Config) (*tunnel.Conn, error) {
	if err := tunnel.Prepare(tcp); err != nil {
		return nil, err
	}
	return tunnel.Server(ctx, tcp, config, e.Buffers)
}

// handshakes are the connections whose peer is not known yet, from the oldest to the newest.
type handshakes struct {
	mu    sync.Mutex
	conns list.List
}

// add adds a connection until the result is called.
func (h *handshakes) add(tcp *net.TCPConn) func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conns.Len() >= maxHandshakes {
		h.conns.Remove(h.conns.Front()).(*net.TCPConn).Close()
	}
	element := h.conns.PushBack(tcp)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.conns.Remove(element)
	}
}
