// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
)

// probes returns the server of the probes of the kubelet and of the agent; nil if address is "0".
func (g *gateway) probes(address string) (*manager.Server, error) {
	if address == "0" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", address) //nolint:noctx // it is closed with the server
	if err != nil {
		return nil, fmt.Errorf("listen for probes: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("/readyz", g.serveReady)
	const timeout = 10 * time.Second
	return &manager.Server{
		Name: "probes", Listener: listener, ShutdownTimeout: new(time.Second),
		Server: &http.Server{Handler: mux, ReadHeaderTimeout: timeout, WriteTimeout: timeout, MaxHeaderBytes: 1 << 14},
	}, nil
}

// serveReady answers whether the gateway is ready. The answer names the configuration that the gateway has applied at the address to which
// the request was sent: its ETag identifies the open listening ports. A request with the header If-None-Match asks for them too, and gets
// them if they are others (G8).
func (g *gateway) serveReady(w http.ResponseWriter, r *http.Request) {
	if g.ready(r) != nil {
		http.Error(w, "not ready", http.StatusInternalServerError) // the log has the reason
		return
	}
	known := r.Header.Get("If-None-Match")
	open := g.clients.openAt(addressOf(r))
	if open == nil {
		fmt.Fprint(w, "ok")
		return
	}
	w.Header().Set("ETag", open.tag)
	switch known {
	case "":
		fmt.Fprint(w, "ok")
	case open.tag:
		w.WriteHeader(http.StatusNotModified)
	default:
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write(open.text) // the next probe asks again
	}
}

// addressOf returns the address to which a request was sent; the zero value if it is not known.
func addressOf(r *http.Request) netip.Addr {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	tcp, ok := local.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// openPorts are the open listening ports of an address, as text, and the tag that identifies them.
type openPorts struct {
	text []byte
	tag  string
}

// openAt returns the listening ports that are open at an address of this gateway; nil if it is no address of it. It leaves out those that
// are about to be closed.
func (l *listeners) openAt(address netip.Addr) *openPorts {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.answers[address]; ok {
		return known
	}
	open, own := ports.Open{}, false
	for _, text := range l.addresses {
		parsed, err := netip.ParseAddr(text)
		own = own || err == nil && parsed.Unmap() == address
	}
	if !own {
		return nil
	}
	for _, listener := range l.open {
		if listener.address == address && listener.closing == nil {
			open[listener.number] = ports.DigestOf(listener.owner)
		}
	}
	text := open.Encode()
	sum := sha256.Sum256(text)
	result := &openPorts{text: text, tag: fmt.Sprintf(`"%x"`, sum[:8])}
	if l.answers == nil {
		l.answers = map[netip.Addr]*openPorts{}
	}
	l.answers[address] = result
	return result
}
