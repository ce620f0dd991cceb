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
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// waitLimit is for a machine that is busy with other tests.
const waitLimit = 2 * time.Minute

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

// runLines runs a command to its end and returns its lines.
func runLines[T any](t *testing.T, w world, args ...string) []T {
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

func hostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// TestServe: a server on free ports answers over TCP and UDP, in both IP families, from the address that was asked, and lingers
// when it is to end.
func TestServe(t *testing.T) {
	t.Parallel()
	w, over := here(t), make(chan time.Time)
	out, written := io.Pipe()
	w.out, w.err, w.after = written, t.Output(), func(time.Duration) <-chan time.Time { return over }
	ctx, terminate := context.WithCancel(t.Context())
	defer terminate()
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"serve", "-tcp", "0", "-udp", "0"}, w) }()
	var first serving
	lab.Must(t, json.NewDecoder(out).Decode(&first))
	ask := func(network, client, host string, port int) {
		got := runLines[result](t, here(t), "ask", "-network", network, "-timeout", waitLimit.String(), hostPort(host, port))[0]
		if got.Error != "" || got.Pod != "pod-1" || got.Cluster != "cluster-1" || got.Port != port || got.Client != client {
			t.Errorf("%s to %s port %d: %+v", network, host, port, got)
		}
	}
	tcp, udp := first.Serving.TCP[0], first.Serving.UDP[0]
	ask("tcp4", "127.0.0.1", "127.0.0.1", tcp)
	ask("tcp6", "::1", "::1", tcp)
	ask("udp4", "127.0.0.1", "127.0.0.2", udp)
	ask("udp6", "::1", "::1", udp)
	terminate()
	over <- time.Now()
	if status := <-ended; status != 0 {
		t.Errorf("status %d", status)
	}
}
