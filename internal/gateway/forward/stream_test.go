// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// deadline bounds the waiting of a test for what happens at once.
const deadline = 20 * time.Second

func readAll(t *testing.T, conn *net.TCPConn) (string, error) {
	t.Helper()
	check.Must(t, conn.SetReadDeadline(time.Now().Add(deadline)))
	b, err := io.ReadAll(conn)
	return string(b), err
}

// pair starts two gateways, and returns how clients reach a backend through them.
func pair(t *testing.T, backend func(*net.TCPConn)) (*Importer, *Exporter, string) {
	t.Helper()
	listener := serve(t, backend)
	both := trusts(t, "east", "west")
	e, gateway := exporter(t, both["west"], listener.Addr())
	i, address := importer(t, both["east"], gateway)
	return i, e, address
}

// spec: G6
func TestHalfClose(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		backend func(*net.TCPConn)
		client  func(*net.TCPConn)
		want    string
	}{
		"the client ends first": {
			func(conn *net.TCPConn) {
				all, _ := io.ReadAll(conn)
				_, _ = fmt.Fprintf(conn, "%d bytes", len(all))
				conn.Close()
			},
			func(conn *net.TCPConn) { _, _ = conn.Write(make([]byte, 1<<20)); _ = conn.CloseWrite() },
			"1048576 bytes",
		},
		"the client sends nothing":  {func(conn *net.TCPConn) { echo(conn) }, func(conn *net.TCPConn) { _ = conn.CloseWrite() }, ""},
		"the backend speaks first":  {func(conn *net.TCPConn) { _, _ = io.WriteString(conn, "hello"); conn.Close() }, func(*net.TCPConn) {}, "hello"},
		"the backend sends nothing": {func(conn *net.TCPConn) { conn.Close() }, func(*net.TCPConn) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, _, address := pair(t, test.backend)
			for range 2 {
				client := dial(t, address)
				go test.client(client)
				if got, err := readAll(t, client); got != test.want || err != nil {
					t.Errorf("received %q, error %v, want %q", got, err, test.want)
				}
				client.Close()
			}
			check.Equal(t, "streams", 2.0, testutil.ToFloat64(i.Metrics.openedTotal.WithLabelValues("west")))
		})
	}
}

// A reset of a client or of a backend reaches the other one, also while it only reads or only writes. spec: G6
func TestReset(t *testing.T) {
	t.Parallel()
	abort := func(conn *net.TCPConn) { _ = conn.SetLinger(0); conn.Close() }
	for name, body := range map[string]func(*net.TCPConn) error{
		"that waits":  func(conn *net.TCPConn) error { _, err := io.ReadAll(conn); return err },
		"that writes": func(conn *net.TCPConn) error { _, err := io.Copy(conn, zeros{}); return err },
	} {
		t.Run("of a client, to a backend "+name, func(t *testing.T) {
			t.Parallel()
			result := make(chan error, 1)
			_, _, address := pair(t, func(conn *net.TCPConn) {
				_, _ = io.WriteString(conn, "x")
				result <- body(conn)
			})
			client := dial(t, address)
			_, err := client.Read(make([]byte, 1))
			check.Must(t, err)
			abort(client)
			checkReset(t, "the backend", <-result)
		})
		t.Run("of a backend, to a client "+name, func(t *testing.T) {
			t.Parallel()
			_, _, address := pair(t, func(conn *net.TCPConn) {
				_, _ = conn.Read(make([]byte, 1))
				abort(conn)
			})
			client := dial(t, address)
			_, err := client.Write([]byte("x"))
			check.Must(t, err)
			checkReset(t, "the client", body(client))
		})
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ENOTCONN)
}

// checkReset fails the test if who did not get a reset.
func checkReset(t *testing.T, who string, err error) {
	t.Helper()
	if !isReset(err) {
		t.Errorf("%s got %v, want a reset", who, err)
	}
}

// spec: G7
func TestRefused(t *testing.T) {
	t.Parallel()
	listener, gone := serve(t, echo), refusing(t)
	both := trusts(t, "east", "west")
	_, works := exporter(t, both["west"], listener.Addr())
	_, unreachable := exporter(t, both["west"], gone)
	_, empty := exporter(t, both["west"])
	_, oneOfTwo := exporter(t, both["west"], gone, listener.Addr())
	for name, test := range map[string]struct {
		gateways []string
		want     string
		reason   string
	}{
		"by a gateway without endpoints, then not":              {[]string{empty, works}, "request", ""},
		"by a gateway whose endpoint does not accept, then not": {[]string{unreachable, works}, "request", ""},
		"by one of two endpoints":                               {[]string{oneOfTwo}, "request", ""},
		"by all":                                                {[]string{empty, empty}, "", "NoEndpoint"},
		"because the port is closed":                            {[]string{gone.String()}, "", "Unreachable"},
		"because there is no gateway":                           {nil, "", "Unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, address := importer(t, both["east"], test.gateways...)
			for range 4 { // at whichever gateway each begins
				got, err := request(t, address)
				if got != test.want || (err == nil) != (test.reason == "") || err != nil && !isReset(err) {
					t.Errorf("received %q, error %v", got, err)
				}
			}
			if test.reason != "" {
				check.Equal(t, "refusals "+test.reason, 4.0, testutil.ToFloat64(i.Metrics.refusedTotal.WithLabelValues("west", test.reason)))
			}
		})
	}
}

// request sends a request, and returns the answer, or why there is none: a client can be reset before it has sent anything.
func request(t *testing.T, address string) (string, error) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	client := conn.(*net.TCPConn)
	if _, err := io.WriteString(client, "request"); err != nil { // the kernel reports a reset once
		return "", err
	}
	if err := client.CloseWrite(); err != nil {
		return "", err
	}
	return readAll(t, client)
}

// A connection is used again after a stream that ended well, and not after any other. spec: G6
func TestReuse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end func(*testing.T, *net.TCPConn)
		// most is the largest number of connections for 6 streams: a second one is made beside a handshake that takes more than a second.
		least, most int
	}{
		"after an end": {func(t *testing.T, conn *net.TCPConn) {
			_ = conn.CloseWrite()
			_, err := readAll(t, conn)
			check.Must(t, err)
		}, 1, 2},
		"after a reset": {func(_ *testing.T, conn *net.TCPConn) { _ = conn.SetLinger(0); conn.Close() }, 6, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener := serve(t, echo)
			both := trusts(t, "east", "west")
			_, gateway := exporter(t, both["west"], listener.Addr())
			counted := &path{to: gateway}
			front := serve(t, counted.serve)
			i, address := importer(t, both["east"], front.Addr().String())
			for range 6 {
				client := dial(t, address)
				_, err := io.WriteString(client, "x")
				check.Must(t, err)
				_, err = io.ReadFull(client, make([]byte, 1))
				check.Must(t, err)
				test.end(t, client)
				if test.most < 6 { // the next client could come before the end of the stream is confirmed
					i.Pool.idle(t)
				}
			}
			if n := counted.tried(); n < test.least || n > test.most {
				t.Errorf("%d connections for 6 streams, want %d to %d", n, test.least, test.most)
			}
		})
	}
}

// The pool keeps warm connections to the clusters in use. spec: G6
func TestWarm(t *testing.T) {
	t.Parallel()
	both := trusts(t, "east", "west")
	_, gateway := exporter(t, both["west"])
	accepted, counted := make(chan struct{}, 100), &path{to: gateway}
	front := serve(t, func(conn *net.TCPConn) {
		accepted <- struct{}{}
		counted.serve(conn)
	})
	i, _ := importer(t, both["east"], front.Addr().String())
	i.Pool.Want([]clusterset.ClusterID{"west"})
	for range warm {
		<-accepted
	}
	i.Pool.Want(nil)
	if got := i.Pool.Reachable(); len(got) > 0 {
		t.Errorf("clusters that are not in use are reported: %v", got)
	}
}

// A gateway that shuts down ends no stream, and gets no new one. spec: G8
func TestShutdown(t *testing.T) {
	t.Parallel()
	listener := serve(t, echo)
	both := trusts(t, "east", "west")
	first, one := exporter(t, both["west"], listener.Addr())
	_, other := exporter(t, both["west"], listener.Addr())
	_, address := importer(t, both["east"], one, other)
	var before []*net.TCPConn
	for range 4 { // at both gateways
		client := dial(t, address)
		before = append(before, client)
		say(t, client)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		first.Shutdown(context.Background())
	}()
	for range 8 {
		client := dial(t, address)
		say(t, client)
		client.Close()
	}
	for _, client := range before {
		say(t, client)
		_ = client.CloseWrite()
		_, err := readAll(t, client)
		check.Must(t, err)
	}
	<-done // the gateway ends after its streams
}

// The time in which a stream must be open ends no stream that is open. spec: G6
func TestOpenTimeout(t *testing.T) {
	t.Parallel()
	stuck := listen(t) // accepts in the kernel only, so the handshake is never complete
	for name, test := range map[string]struct {
		gateway string
		open    bool
	}{"a stream that is open": {"", true}, "a stream that is not": {stuck.Addr().String(), false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener := serve(t, echo)
			both := trusts(t, "east", "west")
			_, gateway := exporter(t, both["west"], listener.Addr())
			_, address := importerWith(t, func(i *Importer) { i.openTimeout = time.Second }, both["east"], cmp.Or(test.gateway, gateway))
			client := dial(t, address)
			if test.open {
				say(t, client)
			}
			check.Must(t, client.SetDeadline(time.Now().Add(2*time.Second)))
			_, err := client.Read(make([]byte, 1))
			if test.open {
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("the client got %v", err)
				}
				say(t, client)
			} else {
				checkReset(t, "the client", err)
			}
		})
	}
}

// say sends a byte, and waits for its echo.
func say(t *testing.T, conn *net.TCPConn) {
	t.Helper()
	check.Must(t, conn.SetDeadline(time.Now().Add(deadline)))
	_, err := io.WriteString(conn, "x")
	check.Must(t, err)
	_, err = io.ReadFull(conn, make([]byte, 1))
	check.Must(t, err)
}

// Streams whose clients do not read leave buffers for others. spec: G12
func TestSlowReaders(t *testing.T) {
	t.Parallel()
	_, _, address := pair(t, func(conn *net.TCPConn) { _, _ = io.Copy(conn, zeros{}); conn.Close() })
	for range 40 { // more than there are large buffers
		client := dial(t, address)
		_, err := client.Read(make([]byte, 1))
		check.Must(t, err)
	}
	client := dial(t, address) // one that reads, beside them
	_, err := io.CopyN(io.Discard, client, 8<<20)
	check.Must(t, err)
}
