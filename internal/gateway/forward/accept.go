// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/go-logr/logr"

	"github.com/tombolo-mcs/tombolo/internal/gateway/budget"
	"github.com/tombolo-mcs/tombolo/internal/gateway/handshakes"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

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
