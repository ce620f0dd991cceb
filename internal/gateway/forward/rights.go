// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

// The ages after which a connection carries no further stream, so that new certificates and addresses come into use: that of the dialer,
// and that of the other side, which does not depend on the dialer.
const (
	maxAge         = 10 * time.Minute
	maxAcceptedAge = 15 * time.Minute
)

// isUsable reports whether the link may carry another stream: it is not too old, and the certificates of both sides give the right.
func (l *link) isUsable() bool { return l.isYoung() && l.conn.Check() == nil }

// isYoung reports whether the link is not too old for another stream. begin checks the rest.
func (l *link) isYoung() bool { return time.Now().Before(l.expires) }

var errTooOld = errors.New("the connection is too old for another stream")

// check returns why the connection may carry no further stream now; nil if it may (G5).
func (c *accepted) check() error {
	if !c.now().Before(c.expires) {
		return errTooOld
	}
	return c.conn.Check()
}

func (c *accepted) now() time.Time {
	if c.exporter.now != nil {
		return c.exporter.now()
	}
	return time.Now()
}

// refusal returns why a stream is refused because of its connection; nil if it is not.
func (c *accepted) refusal(ctx context.Context) *wire.Refusal {
	err := c.check()
	if err == nil {
		return nil
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("a connection carries no further stream", "cluster", c.conn.Cluster, "reason", err.Error())
	return &wire.Refusal{Code: wire.CodeReconnect, Text: "the connection is too old, a certificate is not valid now, or the cluster is not trusted"}
}

// CloseUntrusted closes the connections to gateways that are no longer trusted: their members are suspended or gone, or the authority of
// their certificates was removed. It is called when that may have changed. Expired certificates end no stream.
func (p *Pool) CloseUntrusted() {
	p.mu.Lock()
	var links []*link
	for _, r := range p.remotes {
		links = slices.AppendSeq(links, maps.Keys(r.links))
	}
	p.mu.Unlock()
	for _, l := range links {
		if !l.conn.IsTrusted() {
			l.close()
		}
	}
}

// CloseUntrusted closes the connections of gateways that are no longer trusted: their members are suspended or gone, or the authority of
// their certificates was removed. It is called when that may have changed. Expired certificates end no stream.
func (e *Exporter) CloseUntrusted() {
	e.mu.Lock()
	conns := slices.Collect(maps.Keys(e.conns))
	e.mu.Unlock()
	for _, c := range conns {
		if !c.conn.IsTrusted() {
			c.close()
		}
	}
}

// closeAll closes the connections of all clusters.
func (e *Exporter) closeAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.conns {
		c.close()
	}
}
