// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// middlebox is a proxy in front of a gateway that can drop what idle connections carry, as a NAT or a firewall does that no longer
// knows them: neither side is informed.
type middlebox struct {
	to string

	mu    sync.Mutex
	flows []*connection
}

// connection is a connection through the middlebox. dropped is closed when it is no longer known.
type connection struct {
	dropped chan struct{}
}

// carried returns the number of connections.
func (m *middlebox) carried() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.flows)
}

// drop drops all connections of now.
func (m *middlebox) drop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.flows {
		close(f.dropped)
	}
}

func (m *middlebox) serve(conn *net.TCPConn) {
	defer conn.Close()
	upstream, err := net.Dial("tcp", m.to)
	if err != nil {
		return
	}
	defer upstream.Close()
	f := &connection{dropped: make(chan struct{})}
	m.mu.Lock()
	m.flows = append(m.flows, f)
	m.mu.Unlock()
	var directions sync.WaitGroup
	carry := func(to, from net.Conn) {
		defer func() {
			select {
			case <-f.dropped: // the end is dropped too
			default:
				to.Close()
			}
		}()
		_, _ = io.Copy(f.filter(to), from)
	}
	directions.Go(func() { carry(upstream, conn) })
	directions.Go(func() { carry(conn, upstream) })
	directions.Wait()
}

// filter returns a writer to a side that writes nothing when the flow is dropped.
func (f *connection) filter(to io.Writer) io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		select {
		case <-f.dropped:
			return len(b), nil
		default:
			return to.Write(b)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }

// A middlebox has dropped the idle connections. A request fails in the time in which a stream must be open if its bytes went to one of
// them, and no more requests fail than there were such connections. A client that has sent nothing is connected by a new one.
//
// spec: G6, G7
func TestSilentPath(t *testing.T) {
	t.Parallel()
	const within, idle = 2 * time.Second, 2
	for name, greeting := range map[string]string{"the client speaks first": "", "the server speaks first": "hello\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend := &counter{greeting: greeting, seen: map[string]int{}}
			listener := serve(t, backend.serve)
			both := trusts(t, "east", "west")
			_, gateway := exporter(t, both["west"], listener.Addr())
			box := &middlebox{to: gateway}
			front := serve(t, box.serve)
			i, address := importerWith(t, func(i *Importer) { i.openTimeout = within }, both["east"], front.Addr().String())
			i.connect(t, idle)
			box.drop()
			began, failed := time.Now(), 0
			for _, id := range []string{"1", "2", "3"} {
				err := ask(address, greeting, id)
				if backend.count(id) > 1 || err == nil && backend.count(id) == 0 {
					t.Errorf("request %s: %v, and it arrived %d times", id, err, backend.count(id))
				}
				if err != nil {
					failed++
				}
			}
			took := time.Since(began)
			switch {
			case greeting != "" && failed > 0:
				t.Errorf("%d requests failed of which no byte was sent", failed)
			case failed > idle:
				t.Errorf("%d requests failed, more than there were idle connections", failed)
			case failed == 0 && greeting == "":
				t.Error("no request was sent on a connection that was dropped")
			case took > idle*within+deadline/2:
				t.Errorf("3 requests took %s", took)
			}
			t.Logf("%d requests failed, in %s; %d connections", failed, took.Round(time.Millisecond), box.carried())
		})
	}
}

// connect has a number of idle connections.
func (i *Importer) connect(t *testing.T, n int) {
	t.Helper()
	var links []*link
	for range n {
		got := make(chan *link, 1)
		i.Pool.request("west", "", anyLink, func(l *link, err error) {
			if err != nil {
				t.Error(err)
			}
			got <- l
		})
		links = append(links, <-got)
	}
	for _, l := range links {
		l.loop.Do(func() { i.Pool.put(l) })
	}
}
