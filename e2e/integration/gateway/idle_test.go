// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

const (
	// idleStreams is the number of streams that stay open, if this process may have so many files.
	idleStreams = 10_000
	// filesOfStream is the number of files of a stream in a process that has both gateways, the client and the backend: both ends of
	// three connections. The rest of the test has otherFiles.
	filesOfStream, otherFiles = 6, 2000
)

// holdStreams opens idle streams to a service of b, and fails the test unless they stay open and a new one beside them is answered.
func holdStreams(t *testing.T, address string) {
	t.Helper()
	var limit syscall.Rlimit
	lab.Must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	limit.Cur = limit.Max
	lab.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	files := int(min(limit.Cur, 1<<20))
	if files < otherFiles+100*filesOfStream {
		t.Fatalf("a process may have only %d files open: raise its hard limit (ulimit -Hn)", files)
	}
	clients := make([]net.Conn, min(idleStreams, (files-otherFiles)/filesOfStream))
	defer func() {
		for _, c := range clients {
			if c != nil { // it was opened
				c.Close()
			}
		}
	}()
	began := time.Now()
	each(t, clients, func(c *net.Conn) (err error) {
		*c, err = connect(address)
		return errors.Join(err, answers(*c))
	})
	opened, began := time.Since(began), time.Now()
	if got, err := ask(address); got != "b: hello" || err != nil {
		t.Errorf("a stream beside them: %q, %v", got, err)
	}
	beside := time.Since(began)
	each(t, clients, func(c *net.Conn) error { return answers(*c) })
	t.Logf("%d streams opened in %s; a new one is answered in %s", len(clients), opened.Round(time.Millisecond), beside.Round(time.Microsecond))
}

func answers(conn net.Conn) error {
	if conn == nil {
		return errors.New("not connected")
	}
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	got, err := say(conn)
	if err == nil && got != "b: hello" {
		err = fmt.Errorf("the answer is %q", got)
	}
	return err
}

// each does something for each connection, a few at a time.
func each(t *testing.T, conns []net.Conn, do func(*net.Conn) error) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range conns {
		group.Go(func() error {
			if err := do(&conns[i]); err != nil {
				return fmt.Errorf("stream %d: %w", i, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}
