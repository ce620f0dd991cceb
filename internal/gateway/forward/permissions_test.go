// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Each side denies new streams, and ends open ones when its rules change. Other streams continue.
//
// spec: A2, A4
func TestPermissions(t *testing.T) {
	t.Parallel()
	for name, importing := range map[string]bool{"of the importing gateway": true, "of the exporting gateway": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var denied atomic.Bool
			permissions := &Permissions{Denied: func(id clusterset.ClusterID, request wire.Open) *wire.Refusal {
				if denied.Load() && request.Service == web.Service && (id == "east" || id == "west") {
					return &wire.Refusal{Code: wire.CodeDenied, Text: "a rule denies the client"}
				}
				return nil
			}}
			backend, both := serve(t, echo), trusts(t, "east", "west")
			_, gateway := exporterWith(t, func(e *Exporter) {
				if !importing {
					e.Permissions = permissions
				}
			}, both["west"], backend.Addr())
			i, address := importerWith(t, func(i *Importer) {
				if importing {
					i.Permissions = permissions
				}
			}, both["east"], gateway)
			client := dial(t, address)
			say(t, client)
			permissions.Recheck()
			say(t, client)
			denied.Store(true)
			say(t, client) // until the rules are read
			permissions.Recheck()
			_, err := readAll(t, client)
			checkReset(t, "the open client", err)
			_, err = request(t, address)
			checkReset(t, "the new client", err)
			denials := testutil.ToFloat64(i.Metrics.refusedTotal.WithLabelValues("west", "Denied"))
			check.Equal(t, "refusals of a stream, which is not tried again", 1.0, denials)
			denied.Store(false)
			got, err := request(t, address)
			for end := time.Now().Add(deadline); err != nil && time.Now().Before(end); { // the other gateway's denial is remembered
				got, err = request(t, address)
			}
			if got != "request" || err != nil {
				t.Errorf("received %q, error %v", got, err)
			}
			permissions.mu.Lock()
			defer permissions.mu.Unlock()
			if len(permissions.streams) > 1 { // the last one may not have ended yet
				t.Errorf("%d streams are counted", len(permissions.streams))
			}
		})
	}
}

// A change of the rules does not cut the next stream of a connection: a stream that has ended is not counted when the other gateway may
// open the next one.
//
// spec: A4
func TestEndedStreamIsNotDenied(t *testing.T) {
	t.Parallel()
	permissions := &Permissions{Denied: func(clusterset.ClusterID, wire.Open) *wire.Refusal { return nil }}
	backend, both := serve(t, echo), trusts(t, "east", "west")
	_, gateway := exporterWith(t, func(e *Exporter) { e.Permissions = permissions }, both["west"], backend.Addr())
	conn := peer(t, both["east"], gateway)
	for number := uint32(1); number <= 100; number++ {
		check.Must(t, conn.SendFrames(joined(wire.Append(nil, wire.TypeOpen, number, web.Encode()), frame(wire.TypeFin, number))))
		for done := false; !done; {
			got, err := conn.Next()
			check.Must(t, err)
			done = got.Type == wire.TypeDone
		}
		permissions.mu.Lock()
		counted := len(permissions.streams)
		permissions.mu.Unlock()
		if counted > 0 {
			t.Fatalf("stream %d is counted after DONE", number)
		}
	}
}

// A client that a rule denies learns nothing about what exists: it gets the same answer whatever the backends are.
//
// spec: A2, G3
func TestDeniedBeforeBackends(t *testing.T) {
	t.Parallel()
	both := trusts(t, "east", "west")
	other := web
	other.Service = "other"
	for name, test := range map[string]struct {
		request wire.Open
		to      []net.Addr
		denied  bool
		want    string
	}{
		"denied":                                {web, []net.Addr{serve(t, echo).Addr()}, true, "REFUSED Denied"},
		"denied, and there is no endpoint":      {web, nil, true, "REFUSED Denied"},
		"denied, and it is not exported":        {other, nil, true, "REFUSED Denied"},
		"denied, and the endpoint is not there": {web, []net.Addr{refusing(t)}, true, "REFUSED Denied"},
		"allowed, and there is no endpoint":     {web, nil, false, "REFUSED NoEndpoint"},
		"allowed, and it is not exported":       {other, nil, false, "REFUSED NotExported"},
	} {
		permissions := &Permissions{Denied: func(clusterset.ClusterID, wire.Open) *wire.Refusal {
			if test.denied {
				return &wire.Refusal{Code: wire.CodeDenied}
			}
			return nil
		}}
		_, gateway := exporterWith(t, func(e *Exporter) { e.Permissions = permissions }, both["west"], test.to...)
		conn := peer(t, both["east"], gateway)
		check.Must(t, conn.SendFrames(wire.Append(nil, wire.TypeOpen, 1, test.request.Encode())))
		check.Equal(t, name, test.want, answers(t, conn))
		permissions.mu.Lock()
		check.Equal(t, name+": streams that are counted", 0, len(permissions.streams))
		permissions.mu.Unlock()
	}
}
