// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"net/netip"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/gateway/budget"
	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/stream"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// openTimeout is the time in which a stream must be open, with all attempts.
const openTimeout = 20 * time.Second

// Importer forwards clients of this cluster to other clusters.
type Importer struct {
	Pool *Pool
	// Permissions is nil if every stream is allowed.
	Permissions *Permissions
	Buffers     *tunnel.Buffers
	// Identify waits until it is known who a client is, for requests that are Unidentified. It is nil if that is never known.
	Identify func(ctx context.Context, client netip.Addr) (namespace, account string)
	Metrics  *Metrics
	Limits   *budget.Limits
	Access   AccessLog // nil for none

	openTimeout time.Duration // for tests; 0 means the constant
	denied      denials
}

// Serve forwards a client to a service of a cluster, and returns at once. When both have closed the connection, or the client was reset, it
// calls ended with the reason why the client was reset; nil if it was not.
func (i *Importer) Serve(ctx context.Context, client loop.Accepted, cluster clusterset.ClusterID, request wire.Open, ended func(error)) {
	err := i.serve(ctx, client, cluster, request, ended)
	if err != nil {
		ended(err)
	}
}

func (i *Importer) serve(ctx context.Context, conn loop.Accepted, cluster clusterset.ClusterID, request wire.Open, ended func(error)) error {
	if refusal := i.denied.find(cluster, request, time.Now()); refusal != nil {
		i.Refuse(conn, cluster, request, refusal)
		return refusal
	}
	release, err := i.Limits.Acquire(request.Client.String(), cluster)
	if err != nil {
		i.Refuse(conn, cluster, request, &wire.Refusal{Code: wire.CodeLimit, Text: err.Error()})
		return err
	}
	l, err := i.Buffers.Loops.Next()
	if err != nil {
		release()
		conn.Close()
		return err
	}
	record := i.Access.begin(Importing, cluster, request)
	c := &client{
		importer: i, cluster: cluster, request: request, record: record, started: time.Now(), ctx: context.WithoutCancel(ctx), release: release, ended: ended,
	}
	c.flow = flow{
		Stream: stream.New(stream.Importing, request.Unidentified && i.Identify != nil), side: c, bytes: record.counting(i.Metrics.bytes(cluster)),
	}
	c.loop.Store(l)
	l.Do(func() { c.begin(conn.FD) })
	return nil
}

// Refuse resets a client, and counts it as refused.
func (i *Importer) Refuse(client loop.Accepted, cluster clusterset.ClusterID, request wire.Open, refusal *wire.Refusal) {
	record := i.Access.begin(Importing, cluster, request)
	client.Reset()
	record.finish(nil, Result(refusal.Code.String()))
	i.Metrics.refused(cluster, refusal.Code)
}
