// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/balance"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// silent returns an address that answers no SYN: no program accepts connections, and the queue is full.
func silent(t *testing.T) net.Addr {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	check.Must(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	check.Must(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	check.Must(t, unix.Listen(fd, 0))
	at, err := unix.Getsockname(fd)
	check.Must(t, err)
	address := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: at.(*unix.SockaddrInet4).Port}
	for range 10 {
		conn, err := net.DialTimeout("tcp", address.String(), 100*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Fatal("the queue is not full")
	return nil
}

// ordered are endpoints that are tried in the order of their weights for the client.
type ordered struct {
	all       []netip.AddrPort
	forbidden netip.AddrPort
}

func (o ordered) Endpoints(clusterset.ClusterID, wire.Open) (balance.Endpoints, *wire.Refusal) {
	return balance.Endpoints{Affinity: true, Addresses: o.all, Permit: func(to netip.AddrPort) error {
		if to == o.forbidden {
			return errors.New("it is forbidden")
		}
		return nil
	}}, nil
}

// A stream leads to the first endpoint that is permitted and accepts, whatever the others do, and is refused if there is none. Nothing is
// counted after its end.
//
// spec: G3, G5
func TestAttempt(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("gateways run on Linux")
	}
	answering, gone, drops, other := serve(t, echo).Addr(), refusing(t), silent(t), serve(t, echo).Addr()
	both := trusts(t, "east", "west")
	for name, test := range map[string]struct {
		to   []net.Addr
		want string
	}{
		"it answers":                        {[]net.Addr{answering}, "request"},
		"one refuses":                       {[]net.Addr{answering, gone}, "request"},
		"one does not answer":               {[]net.Addr{answering, drops}, "request"},
		"one is forbidden":                  {[]net.Addr{answering, other}, "request"},
		"one of each kind":                  {[]net.Addr{answering, gone, drops, other}, "request"},
		"one refuses, another is forbidden": {[]net.Addr{gone, other}, ""},
		"none answers":                      {[]net.Addr{drops, gone}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endpoints := ordered{forbidden: other.(*net.TCPAddr).AddrPort()}
			for _, address := range test.to {
				endpoints.all = append(endpoints.all, address.(*net.TCPAddr).AddrPort())
			}
			permissions := &Permissions{Denied: func(clusterset.ClusterID, wire.Open) *wire.Refusal { return nil }}
			_, gateway := exporterWith(t, func(e *Exporter) {
				e.Backends, e.Permissions, e.connectTimeout = endpoints, permissions, 200*time.Millisecond
			}, both["west"])
			_, address := importer(t, both["east"], gateway)
			got, err := request(t, address)
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("received %q, error %v", got, err)
			}
			if test.want == "" {
				permissions.mu.Lock()
				defer permissions.mu.Unlock()
				check.Equal(t, "streams that are counted", 0, len(permissions.streams))
			}
		})
	}
}
