// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// line is a wire between an agent and the hub that can be cut.
type line struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// newLine returns a wire to the API server of a config, and the config that goes through it.
func newLine(t *testing.T, config *rest.Config) (*line, *rest.Config) {
	t.Helper()
	target, err := url.Parse(config.Host)
	must(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	l := &line{listener: listener, target: target.Host, conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = listener.Close() // nothing follows from it
		l.cut()
	})
	go l.serve(context.WithoutCancel(t.Context()))
	through := rest.CopyConfig(config)
	through.Host = "https://" + listener.Addr().String()
	return l, through
}

func (l *line) serve(ctx context.Context) {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		go l.carry(ctx, conn)
	}
}

func (l *line) carry(ctx context.Context, from net.Conn) {
	defer from.Close()
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.target)
	if err != nil {
		return // the agent sees that the hub is away
	}
	defer to.Close()
	l.mu.Lock()
	l.conns[from] = true
	l.mu.Unlock()
	go func() {
		_, err := io.Copy(to, from)
		_ = errors.Join(err, to.Close()) // either end ends both
	}()
	_, _ = io.Copy(from, to) // the same
	l.mu.Lock()
	delete(l.conns, from)
	l.mu.Unlock()
}

// cut ends all connections, those of watches too, and returns how many there were.
func (l *line) cut() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.conns {
		_ = conn.Close() // it may have been closed by the agent
	}
	return len(l.conns)
}
