// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// A gateway that completes handshakes and then closes the connection, or asks for no further stream, is not dialed without pause, and does
// not count as reachable.
//
// spec: G6, G8, G12
func TestClosedAfterHello(t *testing.T) {
	t.Parallel()
	const handshakes = 6
	both := trusts(t, "east", "west")
	for name, end := range map[string]func(*tunnel.Conn){
		"closed": func(*tunnel.Conn) {},
		"GOAWAY": func(conn *tunnel.Conn) { _ = conn.Send(wire.TypeGoaway, 0, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			accepted := make(chan struct{}, 1000)
			front := serve(t, func(tcp *net.TCPConn) {
				accepted <- struct{}{}
				if conn, err := tunnel.Server(context.Background(), tcp, both["west"].Server(), tunnel.NewBuffers(1), tunnel.Steps{}); err == nil {
					end(conn)
					conn.Release()
				}
			})
			i, _ := importer(t, both["east"], front.Addr().String())
			began := time.Now()
			i.Pool.Want([]clusterset.ClusterID{"west"})
			for range warm + handshakes {
				<-accepted
			}
			// The pauses are at least half of 20, 40, 80, 160, 320 ms.
			if took := time.Since(began); took < 300*time.Millisecond {
				t.Errorf("%d connections in %s", warm+handshakes, took)
			}
			if why, known := i.Pool.Reachable()["west"]; !known || why == nil {
				t.Errorf("the gateway is reachable: %v, %t", why, known)
			}
		})
	}
}

// One of two addresses accepts connections and never answers: clients are served by the other one, while that handshake is not given up.
//
// spec: G6
func TestSilentAddress(t *testing.T) { //nolint:paralleltest // a handshake is given up after 10 s
	both, backend := trusts(t, "east", "west"), serve(t, echo)
	_, gateway := exporter(t, both["west"], backend.Addr())
	for name, order := range map[string]func(silent string) []string{
		"the first": func(silent string) []string { return []string{silent, gateway} },
		"the last":  func(silent string) []string { return []string{gateway, silent} },
	} {
		t.Run(name, func(t *testing.T) {
			var ended atomic.Int32
			silent := serve(t, func(conn *net.TCPConn) {
				_, _ = io.Copy(io.Discard, conn)
				ended.Add(1)
			})
			_, address := importer(t, both["east"], order(silent.Addr().String())...)
			for range 3 {
				if got, err := request(t, address); got != "request" || err != nil {
					t.Fatalf("a client got %q, %v", got, err)
				}
			}
			check.Equal(t, "handshakes that were given up before the clients are served", int32(0), ended.Load())
		})
	}
}

// Many clients at once, and no connection yet: each is served, with a bounded number of handshakes at a time.
//
// spec: G12
func TestCrowd(t *testing.T) { //nolint:paralleltest // it uses the whole CPU
	const clients = 400 // more than the handshakes that a gateway accepts at a time
	both, backend := trusts(t, "east", "west"), serve(t, echo)
	_, gateway := exporter(t, both["west"], backend.Addr())
	_, address := importerWith(t, func(i *Importer) { i.openTimeout = 5 * time.Minute }, both["east"], gateway) // a test machine may be slow
	var reset atomic.Int32
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			client, err := net.Dial("tcp", address)
			if err != nil {
				reset.Add(1)
				return
			}
			defer client.Close()
			if _, err = client.Write([]byte("x")); err == nil {
				_, err = io.ReadFull(client, make([]byte, 1))
			}
			if err != nil {
				reset.Add(1)
			}
		})
	}
	all.Wait()
	check.Equal(t, "clients that were reset", int32(0), reset.Load())
}

// A request gets a connection or an error once, or is canceled.
//
// spec: G6
func TestRequestIsCanceled(t *testing.T) {
	t.Parallel()
	both := trusts(t, "east", "west")
	_, gateway := exporter(t, both["west"])
	silent, _ := importer(t, both["east"], serve(t, func(conn *net.TCPConn) { _, _ = io.Copy(io.Discard, conn) }).Addr().String())
	canceled := silent.Pool.request("west", "", anyLink, func(*link, error) { t.Error("a canceled request is answered") })
	check.Equal(t, "canceled", true, canceled())
	silent.Pool.Close()
	i, _ := importer(t, both["east"], gateway)
	delivered := make(chan *link, 1)
	cancel := i.Pool.request("west", "", anyLink, func(l *link, err error) {
		check.Must(t, err)
		delivered <- l
	})
	l := <-delivered
	check.Equal(t, "canceled after the answer", false, cancel())
	i.Pool.put(l)
	i.Pool.Close()
	i.Pool.request("west", "", newLink, func(l *link, err error) {
		delivered <- l
		check.Equal(t, "error of a pool that is closed", net.ErrClosed, err)
	})
	<-delivered
	i.Pool.mu.Lock()
	defer i.Pool.mu.Unlock()
	check.Equal(t, "requests that wait", 0, len(i.Pool.remote("west").waiting))
}
