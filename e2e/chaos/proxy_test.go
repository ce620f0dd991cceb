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
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// line is a wire between an agent and an API server. It can be cut, kept cut, and made slow.
type line struct {
	target string
	// delay is for how long, in nanoseconds, whatever is sent is on its way, in either direction.
	delay atomic.Int64
	// down says that nothing gets through.
	down atomic.Bool

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// newLine returns a wire to the API server of a config, and the config that goes through it.
func newLine(t *testing.T, config *rest.Config) (*line, *rest.Config) {
	t.Helper()
	target, err := url.Parse(config.Host)
	lab.Must(t, err)
	l := &line{target: target.Host, conns: map[net.Conn]bool{}}
	ctx := context.WithoutCancel(t.Context())
	address := lab.ServeTCP(t, "127.0.0.1:0", func(conn net.Conn) { l.carry(ctx, conn) })
	t.Cleanup(func() { l.cut() })
	through := rest.CopyConfig(config)
	through.Host = "https://" + address.String()
	return l, through
}

func (l *line) carry(ctx context.Context, from net.Conn) {
	defer from.Close()
	if l.down.Load() {
		return
	}
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.target)
	if err != nil {
		return // the agent sees that the hub is unreachable
	}
	defer to.Close()
	l.mu.Lock()
	l.conns[from] = true
	l.mu.Unlock()
	go func() {
		err := l.forward(ctx, to, from)
		_ = errors.Join(err, to.Close()) // either end ends both
	}()
	_ = l.forward(ctx, from, to) // the same
	l.mu.Lock()
	delete(l.conns, from)
	l.mu.Unlock()
}

// forward carries what comes from one end to the other until either is closed.
func (l *line) forward(ctx context.Context, to io.Writer, from io.Reader) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if d := time.Duration(l.delay.Load()); d > 0 {
			pause(ctx, d)
		}
		if _, failed := to.Write(buffer[:n]); failed != nil {
			return failed
		}
		if err != nil {
			return err
		}
	}
}

// kill has nothing get through until restore is called.
func (l *line) kill() {
	l.down.Store(true)
	l.cut()
}

func (l *line) restore() { l.down.Store(false) }

// cut ends all connections, those of watches too, and returns how many there were.
func (l *line) cut() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.conns {
		_ = conn.Close() // it may have been closed by the agent
	}
	return len(l.conns)
}
