// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// The importing gateway waits for who a client is only if the exporting one asks for it, or is of a version that cannot ask and denies the
// unknown client. No byte of the client is lost meanwhile, and no request arrives twice.
//
// spec: A3, G7
func TestIdentify(t *testing.T) {
	t.Parallel()
	denied := &wire.Refusal{Code: wire.CodeDenied, Text: "denied"}
	shopOnly := func(r wire.Open) *wire.Refusal {
		if r.ClientNamespace != "shop" {
			return denied
		}
		return nil
	}
	asking := func(r wire.Open) *wire.Refusal {
		if r.Unidentified {
			return &wire.Refusal{Code: wire.CodeUnidentified}
		}
		return shopOnly(r)
	}
	for name, test := range map[string]struct {
		rules     func(wire.Open) *wire.Refusal
		namespace string // of the client, if the gateway waits
		waits     int32
		served    bool
	}{
		"no rule":                                {func(wire.Open) *wire.Refusal { return nil }, "shop", 0, true},
		"a rule for namespaces":                  {asking, "shop", 1, true},
		"for others":                             {asking, "other", 1, false},
		"for a client that stays unknown":        {asking, "", 1, false},
		"of an earlier version":                  {shopOnly, "shop", 1, true},
		"of an earlier version, for others":      {shopOnly, "", 1, false},
		"a rule that denies all":                 {func(wire.Open) *wire.Refusal { return denied }, "shop", 1, false},
		"that asks although the client is known": {func(wire.Open) *wire.Refusal { return &wire.Refusal{Code: wire.CodeUnidentified} }, "shop", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var reached, waits atomic.Int32
			listener := serve(t, func(conn *net.TCPConn) {
				reached.Add(1)
				echo(conn)
			})
			both := trusts(t, "east", "west")
			_, gateway := exporterWith(t, func(e *Exporter) {
				e.Permissions = &Permissions{Denied: func(_ clusterset.ClusterID, r wire.Open) *wire.Refusal { return test.rules(r) }}
			}, both["west"], listener.Addr())
			i, _ := importerWith(t, func(i *Importer) {
				i.Identify = func(_ context.Context, client netip.Addr) (string, string) {
					check.Equal(t, "client", web.Client.String(), client.String())
					waits.Add(1)
					return test.namespace, "frontend"
				}
			}, both["east"], gateway)
			unknown := web
			unknown.Unidentified = true
			clients := accept(t, func(client loop.Accepted) { i.Serve(context.Background(), client, "west", unknown, func(error) {}) })
			got, err := request(t, clients.Addr().String())
			if test.served && (got != "request" || err != nil) || !test.served && !isReset(err) {
				t.Errorf("the client got %q, %v, want an answer: %t", got, err, test.served)
			}
			check.Equal(t, "the gateway has waited", test.waits, waits.Load())
			want := int32(0)
			if test.served {
				want = 1
			}
			check.Equal(t, "requests that have reached the backend", want, reached.Load())
		})
	}
}
