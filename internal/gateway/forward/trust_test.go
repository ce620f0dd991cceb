// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// side is the trust of the gateways of a cluster, with what a fault changes.
type side struct {
	identity.Trust
	clock *clocktesting.FakePassiveClock
	pool  *atomic.Pointer[x509.CertPool] // if not nil, of the other cluster
	// trusted is false if the other cluster has no authorities.
	trusted *atomic.Bool
}

func sideOf(trust identity.Trust) side {
	s := side{trust, clocktesting.NewFakePassiveClock(time.Now()), &atomic.Pointer[x509.CertPool]{}, &atomic.Bool{}}
	s.trusted.Store(true)
	s.Clock = s.clock
	s.Authorities = func(other clusterset.ClusterID) *x509.CertPool {
		if !s.trusted.Load() {
			return nil
		}
		if pool := s.pool.Load(); pool != nil {
			return pool
		}
		return trust.Authorities(other)
	}
	return s
}

// jump sets the clock to a time from now, and returns what sets it right.
func (s side) jump(by time.Duration) (repair func()) {
	right := s.clock.Now()
	s.clock.SetTime(right.Add(by))
	return func() { s.clock.SetTime(right) }
}

// publish replaces the authority of the other cluster, and returns what restores it.
func (s side) publish(t *testing.T, cluster clusterset.ClusterID) (repair func()) {
	t.Helper()
	another, err := identity.NewAuthority(cluster, time.Now())
	check.Must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(another.Certificate)
	s.pool.Store(pool)
	return func() { s.pool.Store(nil) }
}

// A clock jumps across the validity of the certificates, or the bundle of another authority is published: the stream that is open
// continues, a new client is reset and reaches no backend, and clients are answered as soon as the fault is repaired.
//
// spec: G5
func TestTrustIsLost(t *testing.T) {
	t.Parallel()
	const ahead, back = 8 * 24 * time.Hour, -24 * time.Hour // leaves are valid for seven days, from ten minutes ago
	for name, fault := range map[string]func(t *testing.T, importing, exporting side) func(){
		"the clock of the importing gateway is ahead": func(_ *testing.T, i, _ side) func() { return i.jump(ahead) },
		"the clock of the exporting gateway is ahead": func(_ *testing.T, _, e side) func() { return e.jump(ahead) },
		"the clock of the importing gateway is back":  func(_ *testing.T, i, _ side) func() { return i.jump(back) },
		"the clock of the exporting gateway is back":  func(_ *testing.T, _, e side) func() { return e.jump(back) },
		"the wrong bundle of the exporting cluster":   func(t *testing.T, i, _ side) func() { t.Helper(); return i.publish(t, "west") },
		"the wrong bundle of the importing cluster":   func(t *testing.T, _, e side) func() { t.Helper(); return e.publish(t, "east") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var reached atomic.Int32
			listener := serve(t, func(conn *net.TCPConn) {
				reached.Add(1)
				echo(conn)
			})
			both := trusts(t, "east", "west")
			importing, exporting := sideOf(both["east"]), sideOf(both["west"])
			_, gateway := exporter(t, exporting.Trust, listener.Addr())
			_, address := importer(t, importing.Trust, gateway)
			open := dial(t, address) // it uses the only connection between the gateways
			say(t, open)
			repair := fault(t, importing, exporting)
			if got, err := request(t, address); !isReset(err) {
				t.Errorf("during the fault, a new client got %q, %v, want a reset", got, err)
			}
			check.Equal(t, "connections to the backend, of which the open stream has one", int32(1), reached.Load())
			say(t, open)
			repair()
			if got, err := request(t, address); got != "request" || err != nil {
				t.Errorf("after the fault, a client got %q, %v", got, err)
			}
			say(t, open)
		})
	}
}

// What an attacker on the network has recorded of a connection reaches no backend when it is sent again.
//
// spec: G5, A3
func TestReplay(t *testing.T) {
	t.Parallel()
	c := &counter{seen: map[string]int{}}
	backend, both := serve(t, c.serve), trusts(t, "east", "west")
	_, gateway := exporter(t, both["west"], backend.Addr())
	recorded := make(chan []byte, 1)
	attacker := serve(t, func(conn *net.TCPConn) { // the only connection
		upstream, err := net.Dial("tcp", gateway)
		if err != nil {
			t.Error(err)
			return
		}
		defer upstream.Close()
		go func() { _, _ = io.Copy(conn, upstream); conn.Close() }()
		var sent bytes.Buffer
		_, _ = io.Copy(upstream, io.TeeReader(conn, &sent))
		recorded <- sent.Bytes()
	})
	i, address := importer(t, both["east"], attacker.Addr().String())
	client := dial(t, address)
	_, err := io.WriteString(client, "once\n")
	check.Must(t, err)
	answer, err := bufio.NewReader(client).ReadString('\n')
	check.Must(t, err)
	check.Equal(t, "answer", "once\n", answer)
	i.Pool.Close()
	client.Close()
	again := dial(t, gateway)
	_, err = again.Write(<-recorded)
	check.Must(t, err)
	check.Must(t, again.SetReadDeadline(time.Now().Add(deadline)))
	if _, err := io.Copy(io.Discard, again); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the gateway does not close the connection")
	}
	check.Equal(t, "requests that the backend has received", 1, c.count("once"))
}
