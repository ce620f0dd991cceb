// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/budget"
	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Many streams that are stalled in both directions, as neither client nor backend reads, or do not open although their clients have sent bytes,
// hold in both gateways no more memory than is acquired for them and for buffers. One stream more is refused, open streams move bytes, and all
// memory is free at the end.
//
// spec: G6, G12
func TestMemoryOfStalledStreams(t *testing.T) { //nolint:paralleltest // it measures the memory of the process
	const (
		stalled, unopened = 40, 20
		streams           = stalled + unopened + 1 // one that moves
		large             = 1                      // buffers of each gateway
	)
	chunk, accepted := make([]byte, 64<<10), make(chan *net.TCPConn, streams)
	backend := serve(t, func(conn *net.TCPConn) {
		first := make([]byte, 1)
		if _, err := io.ReadFull(conn, first); err != nil {
			return
		}
		if first[0] == 'x' {
			_, _ = conn.Write(first)
			echo(conn)
			return
		}
		accepted <- conn
	})
	silent := listen(t) // accepts in the kernel only
	both, importMemory, exportMemory := trusts(t, "east", "west"), budget.New(2*streams*budget.Stream), budget.New(8*streams*budget.Stream)
	exports, gateway := exporterWith(t, func(e *Exporter) {
		e.Buffers = tunnel.NewBuffers(large)
		e.Limits.Memory, e.Limits.Bytes = exportMemory, budget.Stream-budget.Connection
		e.Connections.Memory, e.Connections.Bytes = exportMemory, budget.Connection
	}, both["west"], backend.Addr())
	imports, address := importerWith(t, func(i *Importer) {
		i.Buffers = tunnel.NewBuffers(large)
		i.Pool.Buffers, i.Pool.Memory = i.Buffers, importMemory
		i.Limits.Memory, i.Limits.Bytes = importMemory, budget.Stream
		i.Pool.Addresses = func(cluster clusterset.ClusterID) []string {
			return map[clusterset.ClusterID][]string{"west": {gateway}, "north": {silent.Addr().String()}}[cluster]
		}
	}, both["east"])
	north := accept(t, func(client loop.Accepted) { imports.Serve(context.Background(), client, "north", web, func(error) {}) })
	moving := dial(t, address)
	say(t, moving)

	before := memory()
	var conns []*net.TCPConn
	for i := range stalled + unopened {
		to := address
		if i >= stalled {
			to = north.Addr().String()
		}
		client := dial(t, to)
		check.Must(t, client.SetReadBuffer(4<<10))
		_, err := io.WriteString(client, "z")
		check.Must(t, err)
		conns = append(conns, client)
	}
	for range stalled {
		conns = append(conns, <-accepted)
	}
	var filled sync.WaitGroup
	for _, conn := range conns {
		filled.Go(func() { fill(conn, chunk, 200*time.Millisecond, 64<<20) })
	}
	filled.Wait()
	grown, used := memory()-before, imports.Buffers.Used()+exports.Buffers.Used()
	_, each := importMemory.Used()
	check.Equal(t, "bytes that are acquired for the client", streams*budget.Stream, int(each[web.Client.String()]))
	const limits = 2 * 2 * large * tunnel.LargeSize // of large and small buffers of both
	if most := int64(streams+stalled)*(budget.Stream-budget.Connection) + limits; used > most {
		t.Errorf("buffers of %d KiB are in use, of %d KiB", used>>10, most>>10)
	}
	if most := int64(streams+stalled)*budget.Stream + limits; grown > 3*most { // the test's own connections and the race detector use some
		t.Errorf("%d KiB more are in use than before, of %d KiB", grown>>10, most>>10)
	}
	t.Logf("%d KiB more are in use than before, %d KiB in buffers", grown>>10, used>>10)
	_, err := request(t, address)
	checkReset(t, "one client more", err)
	say(t, moving)

	for _, conn := range append(conns, moving) {
		conn.Close()
	}
	silent.Close() // which resets connections whose handshakes have not ended
	imports.Pool.Close()
	for end := time.Now().Add(deadline); ; runtime.Gosched() {
		in, _ := importMemory.Used()
		out, _ := exportMemory.Used()
		if in+out+imports.Buffers.Used()+exports.Buffers.Used() == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d and %d bytes are acquired at the end, %d and %d in buffers", in, out, imports.Buffers.Used(), exports.Buffers.Used())
		}
	}
}

// Connections that become idle are closed if there is no memory for them, but for the warm ones.
//
// spec: G6, G12
func TestMemoryOfIdleConnections(t *testing.T) {
	t.Parallel()
	const few, clients = 2, 16
	both, memory := trusts(t, "east", "west"), budget.New(2*few*budget.Connection) // one cluster has half
	listener := serve(t, echo)
	_, gateway := exporter(t, both["west"], listener.Addr())
	i, address := importerWith(t, func(i *Importer) { i.Pool.Memory = memory }, both["east"], gateway)
	var open []*net.TCPConn
	for range clients {
		client := dial(t, address)
		say(t, client)
		open = append(open, client)
	}
	for _, client := range open {
		client.CloseWrite()
		_, err := readAll(t, client)
		check.Must(t, err)
	}
	await := func(what string, links, bytes int) {
		t.Helper()
		for end := time.Now().Add(deadline); ; runtime.Gosched() {
			i.Pool.mu.Lock()
			got := len(i.Pool.remotes["west"].links)
			i.Pool.mu.Unlock()
			used, _ := memory.Used()
			if got == links && int(used) == bytes {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %d connections and %d bytes, not %d and %d", what, got, used, links, bytes)
			}
		}
	}
	await("idle", warm+few, few*budget.Connection)
	client := dial(t, address)
	say(t, client)
	await("one is used", warm+few, (few-1)*budget.Connection)
	i.Pool.Close()
	await("closed", 0, 0)
}
