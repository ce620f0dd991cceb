// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/balance"
	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// permitting leads all streams to backends that a function permits.
type permitting struct {
	backends
	permit func(netip.AddrPort) error
}

func (p permitting) Endpoints(cluster clusterset.ClusterID, open wire.Open) (balance.Endpoints, *wire.Refusal) {
	result, refusal := p.backends.Endpoints(cluster, open)
	result.Permit = p.permit
	return result, refusal
}

// No stream leads to an endpoint that is not permitted, even if no other one accepts.
//
// spec: W5
func TestPermittedEndpoints(t *testing.T) {
	t.Parallel()
	trust := trusts(t, "east", "west")
	good, bad := serve(t, echo), serve(t, func(conn *net.TCPConn) {
		t.Error("a stream has arrived at an endpoint that is not permitted")
		conn.Close()
	})
	for name, test := range map[string]struct {
		to   []net.Addr
		want string
	}{
		"one of two": {[]net.Addr{bad.Addr(), good.Addr()}, "hello"},
		"none":       {[]net.Addr{bad.Addr(), bad.Addr()}, ""},
	} {
		_, gateway := exporterWith(t, func(e *Exporter) {
			e.Backends = permitting{e.Backends.(backends), func(address netip.AddrPort) error {
				if address == bad.Addr().(*net.TCPAddr).AddrPort() {
					return errors.New("not permitted")
				}
				return nil
			}}
		}, trust["west"], test.to...)
		_, address := importer(t, trust["east"], gateway)
		for range 10 {
			client := dial(t, address)
			_, _ = io.WriteString(client, "hello")
			_ = client.CloseWrite()
			got, err := io.ReadAll(client)
			if string(got) != test.want || (err == nil) != (test.want != "") {
				t.Errorf("%s: it answers %q, %v", name, got, err)
			}
		}
	}
}

// A client that is refused is reset, and counted.
//
// spec: W5, G11
func TestRefuse(t *testing.T) {
	t.Parallel()
	var got Access
	logged := make(chan struct{})
	i := &Importer{Metrics: NewMetrics("import"), Access: func(a Access) {
		got = a
		close(logged)
	}}
	address := accept(t, func(client loop.Accepted) {
		i.Refuse(client, "west", web, &wire.Refusal{Code: wire.CodeDenied})
	}).Addr().String()
	if client, err := net.Dial("tcp", address); err == nil { // or it is reset at once
		defer client.Close()
		if _, err := client.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("the client reads %v, want a reset", err)
		}
	}
	<-logged
	check.Equal(t, "result", Result("Denied"), got.Result)
}
