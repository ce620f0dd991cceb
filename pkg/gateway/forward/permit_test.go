// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tombolo-mcs/tombolo/e2e/framework/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
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
			if got, err := request(t, address); got != "request" || err != nil {
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
// open the next one, and not ended by a change that was decided before.
//
// spec: A4
func TestEndedStreamIsNotDenied(t *testing.T) {
	t.Parallel()
	t.Run("after DONE", func(t *testing.T) {
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
	})
	t.Run("after the decision", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var changed bool
			release := func() {}
			permissions := &Permissions{Denied: func(clusterset.ClusterID, wire.Open) *wire.Refusal {
				if !changed {
					return nil
				}
				release()
				return &wire.Refusal{Code: wire.CodeDenied}
			}}
			var refusal *wire.Refusal
			release, refusal = permissions.admit("east", web, func(*wire.Refusal) { t.Error("the stream is ended") })
			if refusal != nil {
				t.Fatal(refusal)
			}
			changed = true
			permissions.Recheck()
			synctest.Wait()
		})
	})
}
