// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// A denial applies for a second to the same kind of stream: all that decides is the same. Other refusals, and those of clients that are not
// identified, are not remembered.
//
// spec: A3, G12
func TestDenials(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	denied := &wire.Refusal{Code: wire.CodeDenied, Text: "a rule"}
	from := web
	from.ClientNamespace, from.ServiceAccount = "shop", "frontend"
	var d denials
	d.add("west", from, denied, now)
	for name, test := range map[string]struct {
		cluster clusterset.ClusterID
		change  func(*wire.Open)
		after   time.Duration
		want    *wire.Refusal
	}{
		"the same":                        {"west", func(*wire.Open) {}, denialLife - 1, denied},
		"another address of the client":   {"west", func(o *wire.Open) { o.Client = o.Client.Next() }, 0, denied},
		"another cluster":                 {"north", func(*wire.Open) {}, 0, nil},
		"another namespace":               {"west", func(o *wire.Open) { o.Namespace = "x" }, 0, nil},
		"another service":                 {"west", func(o *wire.Open) { o.Service = "x" }, 0, nil},
		"another port":                    {"west", func(o *wire.Open) { o.Port++ }, 0, nil},
		"another hostname":                {"west", func(o *wire.Open) { o.Hostname = "x" }, 0, nil},
		"another namespace of client":     {"west", func(o *wire.Open) { o.ClientNamespace = "x" }, 0, nil},
		"another account":                 {"west", func(o *wire.Open) { o.ServiceAccount = "x" }, 0, nil},
		"a client not yet identified":     {"west", func(o *wire.Open) { o.Unidentified = true }, 0, nil},
		"the same, when its time is over": {"west", func(*wire.Open) {}, denialLife, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d denials
			d.add("west", from, denied, now)
			request := from
			test.change(&request)
			check.Equal(t, "refusal", test.want, d.find(test.cluster, request, now.Add(test.after)))
		})
	}
	unidentified := from
	unidentified.Unidentified, unidentified.Service = true, "other"
	d.add("west", unidentified, denied, now)
	check.Equal(t, "kinds that are remembered", 1, len(d.entries))
	for code := range wire.Code(20) {
		if code != wire.CodeDenied {
			other := from
			other.Service = fmt.Sprint("code", code)
			d.add("west", other, &wire.Refusal{Code: code}, now)
		}
	}
	d.add("west", web, nil, now)
	check.Equal(t, "kinds that are remembered", 1, len(d.entries))
	for n := range 2 * maxDenials {
		other := from
		other.Service = fmt.Sprint("s", n)
		d.add("west", other, denied, now)
	}
	check.Equal(t, "kinds that are remembered", maxDenials, len(d.entries))
	check.Equal(t, "refusal of the first", denied, d.find("west", from, now))
	d.add("west", web, denied, now.Add(denialLife))
	check.Equal(t, "kinds that are remembered after their time", 1, len(d.entries))
	check.Equal(t, "their order", 1, len(d.order))
}

// Clients that another cluster denies, and that try again and again, are not each reported to that cluster.
//
// spec: A3, G12
func TestDeniedAgain(t *testing.T) {
	t.Parallel()
	both, listener := trusts(t, "east", "west"), serve(t, echo)
	_, gateway := exporterWith(t, func(e *Exporter) {
		e.Permissions = &Permissions{Denied: func(clusterset.ClusterID, wire.Open) *wire.Refusal {
			return &wire.Refusal{Code: wire.CodeDenied, Text: "denied"}
		}}
	}, both["west"], listener.Addr())
	counted := &path{to: gateway}
	front := serve(t, func(conn *net.TCPConn) { counted.serve(conn) })
	_, address := importer(t, both["east"], front.Addr().String())
	began := time.Now()
	const clients = 20
	for range clients {
		if got, err := request(t, address); !isReset(err) {
			t.Fatalf("a client got %q, %v, want a reset", got, err)
		}
	}
	// At most one connection a second is made.
	if most := 1 + int(time.Since(began)/denialLife); counted.tried() > most {
		t.Errorf("%d clients have caused %d connections in %s, want at most %d", clients, counted.tried(), time.Since(began), most)
	}
}
