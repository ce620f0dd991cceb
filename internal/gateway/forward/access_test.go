// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/budget"
	"github.com/tombolo-mcs/tombolo/internal/gateway/stream"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

// logTo returns an access log that sends to a channel.
func logTo() (AccessLog, func() Access) {
	lines := make(chan Access, 100)
	return func(a Access) { lines <- a }, func() Access { return <-lines }
}

// Each stream is one line at both gateways, after its end. spec: G11
func TestAccess(t *testing.T) {
	t.Parallel()
	abort := func(conn *net.TCPConn) { _ = conn.SetLinger(0); conn.Close() }
	for name, test := range map[string]struct {
		backend              func(*net.TCPConn)
		client               func(*testing.T, *net.TCPConn)
		sent, received       int64
		importing, exporting Result
	}{
		"done": {
			func(conn *net.TCPConn) { _, _ = io.ReadAll(conn); _, _ = io.WriteString(conn, "answer"); conn.Close() },
			func(t *testing.T, conn *net.TCPConn) {
				t.Helper()
				_, err := io.WriteString(conn, "query")
				check.Must(t, err)
				check.Must(t, conn.CloseWrite())
				_, err = readAll(t, conn)
				check.Must(t, err)
			},
			5, 6, ResultDone, ResultDone,
		},
		"reset by the client": {
			func(conn *net.TCPConn) { _, _ = io.WriteString(conn, "x"); _, _ = io.ReadAll(conn) },
			func(t *testing.T, conn *net.TCPConn) {
				t.Helper()
				_, err := conn.Read(make([]byte, 1))
				check.Must(t, err)
				abort(conn)
			},
			0, 1, ResultLocalReset, ResultRemoteReset,
		},
		"reset by the backend": {
			func(conn *net.TCPConn) { _, _ = conn.Read(make([]byte, 1)); abort(conn) },
			func(t *testing.T, conn *net.TCPConn) {
				t.Helper()
				_, err := io.WriteString(conn, "x")
				check.Must(t, err)
				_, _ = readAll(t, conn)
			},
			1, 0, ResultRemoteReset, ResultLocalReset,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener := serve(t, test.backend)
			both := trusts(t, "east", "west")
			importLog, imported := logTo()
			exportLog, exported := logTo()
			_, gateway := exporterWith(t, func(e *Exporter) { e.Access = exportLog }, both["west"], listener.Addr())
			_, address := importerWith(t, func(i *Importer) { i.Access = importLog }, both["east"], gateway)
			for range 3 {
				test.client(t, dial(t, address))
				want := []Access{
					{Importing, "west", web, gateway, test.sent, test.received, 0, test.importing},
					{Exporting, "east", web, listener.Addr().String(), test.received, test.sent, 0, test.exporting},
				}
				got := []Access{imported(), exported()}
				ignored := []cmp.Option{cmpopts.IgnoreFields(Access{}, "Duration"), cmp.Comparer(func(a, b wire.Open) bool { return bytes.Equal(a.Encode(), b.Encode()) })}
				check.Equal(t, "accesses, of the importer and of the exporter", want, got, ignored...)
				if got[0].Duration <= 0 || got[1].Duration <= 0 {
					t.Errorf("durations %v, %v", got[0].Duration, got[1].Duration)
				}
			}
		})
	}
}

// A stream that is refused is one line with the reason, at the gateway of the client, and at each gateway that has refused it.
func TestAccessRefused(t *testing.T) {
	t.Parallel()
	both := trusts(t, "east", "west")
	importLog, imported := logTo()
	exportLog, exported := logTo()
	_, gateway := exporterWith(t, func(e *Exporter) { e.Access = exportLog }, both["west"])
	_, address := importerWith(t, func(i *Importer) { i.Access = importLog }, both["east"], gateway)
	_, err := request(t, address)
	checkReset(t, "the client", err)
	if got := imported(); got.Result != "NoEndpoint" || got.Received != 0 || got.Peer == "" {
		t.Errorf("at the gateway of the client: %+v", got)
	}
	for range stream.MaxAttempts {
		if got := exported(); got.Result != "NoEndpoint" || got.Received != 0 || got.Sent != 0 || got.Peer != "" {
			t.Errorf("at the other gateway: %+v", got)
		}
	}
	_, address = importerWith(t, func(i *Importer) { i.Access, i.Limits = importLog, &budget.Limits{} }, both["east"], gateway)
	_, err = request(t, address)
	if got := imported(); got.Result != "Limit" || !isReset(err) {
		t.Errorf("beyond the limit: %+v, the client got %v", got, err)
	}
}

// Without an access log, a stream costs nothing for it.
func TestAccessOff(t *testing.T) { //nolint:paralleltest // allocations are counted
	var off AccessLog
	count := func(int, int) {}
	allocations := testing.AllocsPerRun(100, func() {
		record := off.begin(Importing, "west", web)
		record.counting(count)(1, 1)
		record.finish(nil, ResultDone)
	})
	check.Equal(t, "allocations", 0.0, allocations)
}

func TestResultOf(t *testing.T) {
	t.Parallel()
	for want, err := range map[Result]error{
		"Denied": &wire.Refusal{Code: wire.CodeDenied, Text: "text of another cluster"}, "Code999": &wire.Refusal{Code: 999}, ResultRemoteReset: stream.ResetError{Code: wire.CodeSocketReset},
		ResultProtocolError: wire.Violation("OPENED twice"), ResultConnectionLost: io.EOF, "Timeout": errOpenTimeout,
	} {
		check.Equal(t, fmt.Sprintf("%v", err), want, resultOf(err))
	}
}
