// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// patience is for a machine that is busy with other tests.
const patience = 2 * time.Minute

// here is a world of its own for a test.
func here(t *testing.T) world {
	t.Helper()
	return world{
		in: strings.NewReader(""), out: io.Discard, err: io.Discard,
		getenv:     func(name string) string { return strings.ToLower(name) + "-1" },
		resolvConf: filepath.Join(t.TempDir(), "resolv.conf"),
		after:      time.After, //nolint:forbidigo // a value for the program
	}
}

// said runs a command to its end and returns its lines.
func said[T any](t *testing.T, w world, args ...string) []T {
	t.Helper()
	var out, complaints bytes.Buffer
	w.out, w.err = &out, &complaints
	if status := run(t.Context(), args, w); status != 0 || complaints.Len() > 0 {
		t.Fatalf("probe %v: status %d: %s", args, status, complaints.String())
	}
	return decoded[T](t, &out)
}

// decoded returns lines of JSON, each of which may only have the fields of T.
func decoded[T any](t *testing.T, from io.Reader) []T {
	t.Helper()
	var all []T
	for lines := bufio.NewScanner(from); lines.Scan(); {
		var one T
		strict := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&one); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		all = append(all, one)
	}
	return all
}

// served is a server under test.
type served struct {
	tcp, udp []int
	// terminate is SIGTERM.
	terminate func()
	// lingers gets what the server lingers for; over ends that.
	lingers chan time.Duration
	over    chan time.Time
	// status gets the exit status.
	status chan int
}

// startServer starts a server on free ports, which ends with the test.
func startServer(t *testing.T, w world, args ...string) *served {
	t.Helper()
	reader, writer := io.Pipe()
	s := &served{lingers: make(chan time.Duration, 1), over: make(chan time.Time, 1), status: make(chan int, 1)}
	w.out, w.err = writer, t.Output()
	w.after = func(d time.Duration) <-chan time.Time {
		s.lingers <- d
		return s.over
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.terminate = cancel
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.status <- run(ctx, append([]string{"serve"}, args...), w)
		writer.Close()
	}()
	t.Cleanup(func() {
		cancel()
		close(s.over)
		<-done
	})
	var first serving
	if err := json.NewDecoder(reader).Decode(&first); err != nil {
		t.Fatalf("the server said nothing: %v", err)
	}
	s.tcp, s.udp = first.Serving.TCP, first.Serving.UDP
	return s
}

// port returns the first port for a network.
func (s *served) port(network string) int {
	if strings.HasPrefix(network, "udp") {
		return s.udp[0]
	}
	return s.tcp[0]
}

func hostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// eventually waits until a thing holds, which nothing announces.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		}
	}
}

// text is output that may be read while it is written.
type text struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (b *text) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.Write(p)
}

func (b *text) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.String()
}

// needs skips a test whose loopback address the host lacks.
func needs(t *testing.T, host string) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if isMissingFamily(err) {
		lab.Skip(t, "the host has no "+host)
	}
	lab.Must(t, err)
	listener.Close()
}
