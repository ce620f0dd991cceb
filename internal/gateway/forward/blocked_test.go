// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"net"
	"testing"
	"time"
)

// deadlineOf returns a context that ends after deadline.
func deadlineOf(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// TestCloseWhileBackendDoesNotRead: a connection that is closed, for example because its cluster is suspended, does not wait for a backend
// that does not read.
//
// spec: A4, G12
func TestCloseWhileBackendDoesNotRead(t *testing.T) {
	t.Parallel()
	accepted := make(chan *net.TCPConn, 1)
	_, e, address := pair(t, func(conn *net.TCPConn) { accepted <- conn })
	client := dial(t, address)
	backend := <-accepted
	defer backend.Close()
	fill(client, make([]byte, 64<<10), 500*time.Millisecond, 256<<20)
	e.closeAll()
	ctx := deadlineOf(t)
	e.Shutdown(ctx)
	if ctx.Err() != nil {
		t.Error("the exporter waits for a backend that does not read")
	}
}
