// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// slowProxy is a proxy that holds back whatever its clients send for a while. With it between agents and API servers the
// benchmark shows that it would notice a slow agent.
type slowProxy struct {
	url    string
	server *http.Server
}

func startSlowProxy(ctx context.Context, delay time.Duration) (*slowProxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &slowProxy{url: "http://" + listener.Addr().String()}
	p.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tunnel(w, r, delay)
	})}
	go func() { _ = p.server.Serve(listener) }() // ends with an error when it is closed
	return p, nil
}

func (p *slowProxy) close() error { return p.server.Close() }

// tunnel serves a CONNECT request (RFC 9110, 9.3.6) until either end closes.
func tunnel(w http.ResponseWriter, r *http.Request, delay time.Duration) {
	server, err := new(net.Dialer).DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer server.Close()
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the client has gone
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return // the same
	}
	go func() {
		_, _ = io.Copy(client, server) // ends with the connection
		_ = client.Close()
	}()
	_ = copySlowly(server, client, delay) // the same
}

func copySlowly(to io.Writer, from io.Reader, delay time.Duration) error {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			<-time.After(delay)
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
