// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/forward"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Each stream is one line with all fields, whatever they contain.
//
// spec: G11
func TestAccessLog(t *testing.T) {
	t.Parallel()
	const evil = "x\n{\"msg\":\"stream\",\"result\":\"Done\"}\x1b[2J\u2028\"}"
	web := wire.Open{Namespace: "shop", Service: "web", Port: 80, Client: netip.MustParseAddr("10.1.2.3"), ClientNamespace: "front", ServiceAccount: "web"}
	for name, test := range map[string]struct {
		access forward.Access
		want   map[string]any
	}{
		"importing": {
			forward.Access{
				Direction: forward.Importing, Cluster: "west", Stream: web, Peer: "198.51.100.1:443", Sent: 7, Received: 9, Duration: 1500 * time.Millisecond,
				Result: forward.ResultDone,
			},
			map[string]any{
				"direction": "importing", "service": "shop/web", "hostname": "", "port": 80.0, "cluster": "west", "gateway": "198.51.100.1:443", "client": "10.1.2.3",
				"namespace": "front", "serviceAccount": "web", "sent": 7.0, "received": 9.0, "seconds": 1.5, "result": "Done",
			},
		},
		"exporting, refused because of a malformed OPEN": {
			forward.Access{Direction: forward.Exporting, Cluster: "west", Result: "MalformedOpen"},
			map[string]any{
				"direction": "exporting", "service": "", "hostname": "", "port": 0.0, "cluster": "west", "backend": "", "client": "",
				"namespace": "", "serviceAccount": "", "sent": 0.0, "received": 0.0, "seconds": 0.0, "result": "MalformedOpen",
			},
		},
		"with names that are not valid": {
			forward.Access{
				Direction: forward.Exporting, Cluster: clusterset.ClusterID(evil), Peer: evil, Result: forward.Result(evil),
				Stream: wire.Open{Namespace: evil, Service: evil, Hostname: evil, ClientNamespace: evil, ServiceAccount: evil},
			},
			map[string]any{
				"direction": "exporting", "service": evil + "/" + evil, "hostname": evil, "port": 0.0, "cluster": evil, "backend": evil, "client": "",
				"namespace": evil, "serviceAccount": evil, "sent": 0.0, "received": 0.0, "seconds": 0.0, "result": evil,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			accessLog(slog.New(slog.NewJSONHandler(&out, nil)))(test.access)
			if strings.Count(out.String(), "\n") != 1 || strings.ContainsAny(out.String(), "\x1b\u2028") {
				t.Errorf("not one line: %q", out.String())
			}
			var got map[string]any
			check.Must(t, json.Unmarshal(out.Bytes(), &got))
			for _, field := range []string{"time", "level", "msg"} {
				if got[field] == "" {
					t.Errorf("no field %s", field)
				}
				delete(got, field)
			}
			check.Equal(t, "line", test.want, got)
		})
	}
}

// A gateway writes an access log only if it has a logger for it, for both directions.
func TestAccessLogIsOptional(t *testing.T) {
	t.Parallel()
	for name, logger := range map[string]*slog.Logger{"without": nil, "with": slog.New(slog.DiscardHandler)} {
		g := newGateway(t.Context(), Options{Log: logr.Discard(), AccessLog: logger}, nil, nil)
		if importing, exporting := g.importer.Access != nil, g.exporter.Access != nil; importing != (logger != nil) || exporting != importing {
			t.Errorf("%s a logger: of importing %v, of exporting %v", name, importing, exporting)
		}
	}
}
