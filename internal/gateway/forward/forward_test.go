// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/balance"
	"github.com/tombolo-mcs/tombolo/internal/gateway/budget"
	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var web = wire.Open{Protocol: wire.ProtocolTCP, Namespace: "shop", Service: "web", Port: 80, Client: netip.MustParseAddr("10.1.2.3")}

// trusts returns whom the gateways of a cluster trust, for clusters that trust each other.
func trusts(t testing.TB, ids ...clusterset.ClusterID) map[clusterset.ClusterID]identity.Trust {
	t.Helper()
	pools, result := map[clusterset.ClusterID]*x509.CertPool{}, map[clusterset.ClusterID]identity.Trust{}
	for _, id := range ids {
		authority, err := identity.NewAuthority(id, time.Now())
		check.Must(t, err)
		name := identity.Name{ClusterSet: "set", Cluster: id}
		certificate, key, err := authority.Issue(name, time.Now())
		check.Must(t, err)
		leaf, err := identity.DecodeLeaf(certificate, key)
		check.Must(t, err)
		pools[id] = x509.NewCertPool()
		pools[id].AddCert(authority.Certificate)
		result[id] = identity.Trust{
			Self: name, Leaf: func() *tls.Certificate { return leaf }, Clock: clock.RealClock{},
			Authorities: func(other clusterset.ClusterID) *x509.CertPool { return pools[other] },
		}
	}
	return result
}

// listen returns a listener that is closed at the end of the test.
func listen(t testing.TB) *net.TCPListener {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	return listener
}

// refusing returns an address that refuses connections. It is that of an open connection, so that nobody else can listen there meanwhile.
func refusing(t testing.TB) net.Addr {
	t.Helper()
	conn, err := net.Dial("tcp", listen(t).Addr().String())
	check.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn.LocalAddr()
}

// serve returns a listener that calls handle for each connection, until the end of the test.
func serve(t testing.TB, handle func(*net.TCPConn)) *net.TCPListener {
	t.Helper()
	listener := listen(t)
	go func() {
		for {
			conn, err := listener.AcceptTCP()
			if err != nil {
				return
			}
			go handle(conn)
		}
	}()
	return listener
}

// accept calls handle with each client that connects to the result, until the test ends.
func accept(t testing.TB, handle func(loop.Accepted)) *loop.Listener {
	t.Helper()
	listener, err := loop.Listen(t.Context(), "127.0.0.1:0")
	check.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			handle(client)
		}
	}()
	return listener
}

func dial(t testing.TB, address string) *net.TCPConn {
	t.Helper()
	conn, err := tunnel.DialTCP(t.Context(), address, deadline, nil)
	check.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// backends leads all streams to some addresses.
type backends []netip.AddrPort

func (b backends) Endpoints(_ clusterset.ClusterID, open wire.Open) (balance.Endpoints, *wire.Refusal) {
	if open.Service != web.Service {
		return balance.Endpoints{}, &wire.Refusal{Code: wire.CodeNotExported, Text: "the service is not exported"}
	}
	return balance.Endpoints{Addresses: b}, nil
}

// exporter starts a gateway of cluster west, and returns its address.
func exporter(t testing.TB, trust identity.Trust, to ...net.Addr) (*Exporter, string) {
	t.Helper()
	return exporterWith(t, func(*Exporter) {}, trust, to...)
}

// exporterWith is exporter with other settings.
func exporterWith(t testing.TB, change func(*Exporter), trust identity.Trust, to ...net.Addr) (*Exporter, string) {
	t.Helper()
	var b backends
	for _, address := range to {
		b = append(b, address.(*net.TCPAddr).AddrPort())
	}
	e := &Exporter{
		Backends: b, Buffers: tunnel.NewBuffers(16), Metrics: NewMetrics("export"),
		Limits: &budget.Limits{Total: 10000, Each: 5000}, Connections: &budget.Limits{Total: 10000, Each: 5000},
	}
	change(e)
	listener := listen(t)
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := e.Accept(context.Background(), listener, trust.Server()); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-served
		now, cancel := context.WithCancel(context.Background())
		cancel()
		e.Shutdown(now)
	})
	return e, listener.Addr().String()
}

// importer starts a gateway of cluster east that forwards to web of cluster west, and returns its address for clients.
func importer(t testing.TB, trust identity.Trust, gateways ...string) (*Importer, string) {
	t.Helper()
	return importerWith(t, func(*Importer) {}, trust, gateways...)
}

// importerWith is importer with other settings.
func importerWith(t testing.TB, change func(*Importer), trust identity.Trust, gateways ...string) (*Importer, string) {
	t.Helper()
	buffers, metrics := tunnel.NewBuffers(16), NewMetrics("import")
	i := &Importer{
		Pool: &Pool{
			Addresses: func(clusterset.ClusterID) []string { return gateways },
			Config:    trust.Client, Buffers: buffers, Metrics: metrics,
		},
		Buffers: buffers, Metrics: metrics, Limits: &budget.Limits{Total: 10000, Each: 5000},
	}
	change(i)
	t.Cleanup(i.Pool.Close)
	listener := accept(t, func(client loop.Accepted) {
		i.Serve(context.Background(), client, "west", web, func(error) {})
	})
	return i, listener.Addr().String()
}

// echo answers with what it receives.
func echo(conn *net.TCPConn) {
	defer conn.Close()
	_, _ = io.Copy(conn, conn)
}

// spec: G6
func TestForward(t *testing.T) {
	t.Parallel()
	_, _, address := pair(t, echo)
	for range 3 { // on one connection between the gateways
		client := dial(t, address)
		sent := make([]byte, 3<<20)
		for i := range sent {
			sent[i] = byte(i * i >> 3)
		}
		go func() {
			_, _ = client.Write(sent)
			_ = client.CloseWrite()
		}()
		received, err := io.ReadAll(client)
		if err != nil || !bytes.Equal(received, sent) {
			t.Fatalf("received %d bytes, error %v", len(received), err)
		}
	}
}
