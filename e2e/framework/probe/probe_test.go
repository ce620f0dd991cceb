// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
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
