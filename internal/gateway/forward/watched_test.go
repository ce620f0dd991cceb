// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// Every socket is watched while its stream lives: whatever a stream waits for, a reset of the client, of the backend or of the connection
// between the gateways ends it on both sides at once, and no limit counts it any more.
//
// spec: G6, G12
func TestWatched(t *testing.T) {
	t.Parallel()
	type ends struct{ client, backend *net.TCPConn }
	for state, bring := range map[string]func(ends){
		"idle":                      func(ends) {},
		"the client has sent all":   func(e ends) { end(e.client, e.backend) },
		"the backend has sent all":  func(e ends) { end(e.backend, e.client) },
		"the client does not read":  func(e ends) { fill(e.backend, make([]byte, 64<<10), 200*time.Millisecond, 64<<20) },
		"the backend does not read": func(e ends) { fill(e.client, make([]byte, 64<<10), 200*time.Millisecond, 64<<20) },
	} {
		for fault, happen := range map[string]func(ends, func()){
			"reset of the client":  func(e ends, _ func()) { reset(e.client) },
			"reset of the backend": func(e ends, _ func()) { reset(e.backend) },
			"loss of the gateway":  func(_ ends, cut func()) { cut() },
		} {
			t.Run(state+", "+fault, func(t *testing.T) {
				t.Parallel()
				both, accepted := trusts(t, "east", "west"), make(chan *net.TCPConn, 1)
				backend := serve(t, func(conn *net.TCPConn) { accepted <- conn })
				exports, gateway := exporter(t, both["west"], backend.Addr())
				lost, cut := context.WithCancel(t.Context())
				far := gateway
				between := serve(t, func(conn *net.TCPConn) {
					to := dial(t, far)
					context.AfterFunc(lost, func() { reset(conn); reset(to) })
					go func() { _, _ = io.Copy(to, conn) }()
					_, _ = io.Copy(conn, to)
				})
				if fault == "loss of the gateway" {
					gateway = between.Addr().String()
				}
				imports, address := importer(t, both["east"], gateway)
				e := ends{client: dial(t, address)}
				_, err := e.client.Write([]byte("x"))
				check.Must(t, err)
				e.backend = <-accepted
				t.Cleanup(func() { e.backend.Close() })
				_, err = io.ReadFull(e.backend, make([]byte, 1))
				check.Must(t, err)
				_, err = e.backend.Write([]byte("x"))
				check.Must(t, err)
				_, err = io.ReadFull(e.client, make([]byte, 1))
				check.Must(t, err)
				bring(e)
				happen(e, cut)
				for name, conn := range map[string]*net.TCPConn{"client": e.client, "backend": e.backend} {
					check.Must(t, ignoreClosed(conn.SetDeadline(time.Now().Add(deadline))))
					if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("the %s is not closed", name)
					}
				}
				for end := time.Now().Add(deadline); imports.Limits.Streams() > 0 || exports.Limits.Streams() > 0; runtime.Gosched() {
					if time.Now().After(end) {
						t.Fatalf("%d and %d streams are counted", imports.Limits.Streams(), exports.Limits.Streams())
					}
				}
			})
		}
	}
}

// end ends one direction, and waits until the other side has seen it.
func end(from, to *net.TCPConn) {
	_ = from.CloseWrite()
	_ = to.SetReadDeadline(time.Now().Add(deadline))
	_, _ = to.Read(make([]byte, 1))
}

func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	conn.Close()
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
