// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// counter is a backend that counts requests by ID, and answers each with its ID. With a greeting, it speaks first.
type counter struct {
	greeting string
	mu       sync.Mutex
	seen     map[string]int
}

func (c *counter) serve(conn *net.TCPConn) {
	defer conn.Close()
	_, _ = io.WriteString(conn, c.greeting)
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		c.mu.Lock()
		c.seen[lines.Text()]++
		c.mu.Unlock()
		_, _ = fmt.Fprintln(conn, lines.Text())
	}
}

func (c *counter) count(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[id]
}

// path is a proxy in front of a gateway. Its first connection can end after a number of bytes of one direction.
type path struct {
	to string
	// cut is the direction that is cut: 1 to the gateway, 2 from it, 0 none.
	cut   int
	after int64

	mu          sync.Mutex
	connections int
	carried     [2]int64
	closed      chan struct{} // if not nil, gets a value at the end of each connection
}

// wait returns the bytes that were carried to and from the gateway, when its only connection is closed.
func (p *path) wait() [2]int64 {
	<-p.closed
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.carried
}

// tried returns the number of connections.
func (p *path) tried() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connections
}

func (p *path) serve(conn *net.TCPConn) {
	defer conn.Close()
	upstream, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer upstream.Close()
	p.mu.Lock()
	p.connections++
	first := p.connections == 1
	p.mu.Unlock()
	ended := make(chan struct{}, 2)
	carry := func(direction int, to io.Writer, from io.Reader) {
		if first && p.cut == direction {
			from = io.LimitReader(from, p.after)
		}
		n, _ := io.Copy(to, from)
		p.mu.Lock()
		p.carried[direction-1] += n
		p.mu.Unlock()
		ended <- struct{}{}
	}
	go carry(1, upstream, conn)
	go carry(2, conn, upstream)
	<-ended
	conn.Close()
	upstream.Close()
	<-ended
	if p.closed != nil {
		p.closed <- struct{}{}
	}
}

// ask sends a request, and returns the answer or an error. With a greeting, it first waits for that.
func ask(address, greeting, id string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.ReadFull(conn, make([]byte, len(greeting))); err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	if _, err := fmt.Fprintln(conn, id); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && strings.TrimSpace(answer) != id {
		err = fmt.Errorf("the answer is %q", answer)
	}
	return err
}

// TestOnce cuts the first connection to a gateway after each number of bytes of the stream, and each 16th of the handshake, in each
// direction. No request arrives twice. Each is
// answered if the connection was cut before a byte of the client was sent; if the server speaks first, also if it was cut before the
// stream was open. spec: G7
func TestOnce(t *testing.T) {
	t.Parallel()
	both := trusts(t, "east", "west")
	for name, greeting := range map[string]string{"the client speaks first": "", "the server speaks first": "hello\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend := &counter{greeting: greeting, seen: map[string]int{}}
			listener := serve(t, backend.serve)
			_, gateway := exporter(t, both["west"], listener.Addr())
			// try sends a request over a path that is cut, and reports whether the stream was open.
			try := func(p *path, id string) (opened bool, err error) {
				front := serve(t, p.serve)
				defer front.Close()
				i, address := importer(t, both["east"], front.Addr().String())
				defer i.Pool.Close()
				err = ask(address, greeting, id)
				return testutil.ToFloat64(i.Metrics.openedTotal.WithLabelValues("west")) > 0, err
			}
			whole := &path{to: gateway, closed: make(chan struct{}, 1)}
			_, err := try(whole, "whole")
			check.Must(t, err)
			total := whole.wait()
			// What follows the handshake: HELLO, OPEN, OPENED, DATA, FIN and DONE, each in a record.
			const stream = 250
			kinds := map[string]int{}
			for direction := range total {
				for n := range total[direction] + 10 {
					if n < total[direction]-stream && n%16 > 0 {
						continue
					}
					p := &path{to: gateway, cut: direction + 1, after: n}
					id := fmt.Sprint(direction, "/", n)
					opened, err := try(p, id)
					count := backend.count(id)
					switch {
					case count > 1 || err == nil && count == 0:
						t.Fatalf("cut after %s bytes: error %v, and the request arrived %d times", id, err, count)
					case err != nil && n < total[direction]-stream:
						t.Errorf("cut after %s bytes, before the stream was opened: %v", id, err)
					case err != nil && greeting != "" && !opened:
						t.Errorf("cut after %s bytes, before a byte of the client: %v", id, err)
					case err != nil:
						kinds["failed"]++
					case p.tried() > 1:
						kinds["retried"]++
					default:
						kinds["uncut"]++
					}
				}
			}
			t.Log(kinds)
			if kinds["failed"] == 0 || kinds["retried"] == 0 {
				t.Error("no request failed, or none was tried again: the path is not cut where it should be")
			}
		})
	}
}
