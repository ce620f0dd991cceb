// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/go-logr/logr"

	"github.com/tombolo-mcs/tombolo/internal/gateway/balance"
	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

// attempt connects a backend to the first of its endpoints that is permitted and accepts. It belongs to the loop of the backend.
type attempt struct {
	endpoints balance.Endpoints // in the order in which to try them
	tried     int

	socket       *loop.Socket // to the endpoint that was tried last
	leave        func()       // to be called when no stream leads there
	late, latest time.Time    // when the next endpoint is tried, and when the attempt ends
}

// try begins to connect to the next endpoint, or refuses the stream.
func (b *backend) try() {
	a, c := b.attempt, b.carrier
	for a.tried < len(a.endpoints.Addresses) && c.loop.Now().Before(a.latest) {
		to := a.endpoints.Addresses[a.tried]
		a.tried++
		if permit := a.endpoints.Permit; permit != nil {
			if err := permit(to); err != nil {
				logr.FromContextOrDiscard(c.ctx).V(1).Info("an endpoint is left out", "reason", err.Error())
				continue
			}
		}
		socket, err := c.loop.Connect(to, b)
		if err != nil {
			b.notAccepted(to, err)
			continue
		}
		a.socket, a.leave, a.late = socket, c.exporter.balancer.Enter(to), c.loop.Now().Add(c.exporter.connectWithin())
		return
	}
	// No address of this cluster is sent to another one (W2).
	text := fmt.Sprintf("none of %d endpoints has accepted the connection", len(a.endpoints.Addresses))
	b.refuse(&wire.Refusal{Code: wire.CodeUnreachable, Text: text})
}

func (e *Exporter) connectWithin() time.Duration { return cmp.Or(e.connectTimeout, connectTimeout) }

// attempted sees what has come of the attempt.
func (b *backend) attempted() {
	a := b.attempt
	established, err := a.socket.Established()
	switch {
	case err != nil:
		a.end()
		b.notAccepted(a.endpoints.Addresses[a.tried-1], err)
		b.try()
	case established:
		b.connected()
	}
}

// sweep tries the next endpoint if the last one does not answer in time.
func (b *backend) sweep(now time.Time) {
	a := b.attempt
	if now.Before(a.late) && now.Before(a.latest) {
		return
	}
	a.end()
	b.notAccepted(a.endpoints.Addresses[a.tried-1], os.ErrDeadlineExceeded)
	b.try()
}

func (b *backend) notAccepted(to netip.AddrPort, err error) {
	logr.FromContextOrDiscard(b.carrier.ctx).V(1).Info("an endpoint does not accept", "endpoint", to.String(), "error", err.Error())
}

// end gives the endpoint up that was tried last.
func (a *attempt) end() {
	if a != nil && a.socket != nil {
		a.socket.Close()
		a.socket = nil
		a.leave()
	}
}
