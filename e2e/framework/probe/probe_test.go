// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is for a machine that is busy with other tests.
const patience = 2 * time.Minute

// TestMain lets the test's program be probe itself, for what only a process of its own has.
func TestMain(m *testing.M) {
	if os.Getenv("PROBE_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// here is a world of its own for a test.
func here(t *testing.T) world {
	t.Helper()
	return world{
		in: strings.NewReader(""), out: io.Discard, err: io.Discard,
		getenv:     func(name string) string { return strings.ToLower(name) + "-1" },
		resolvConf: filepath.Join(t.TempDir(), "resolv.conf"),
		after:      time.After,
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

// needs skips a test whose loopback address the host lacks.
func needs(t *testing.T, host string) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if isMissingFamily(err) {
		t.Skipf("the host has no %s: %v", host, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
}

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

func TestUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                                    "usage: probe COMMAND [flags] [operand]\n",
		"sing":                                `probe: unknown command "sing"` + "\n",
		"ask":                                 "probe: 0 operands after the flags [], want 1\nusage: probe ask [flags] HOST:PORT\n",
		"ask a:1 -count 3":                    `probe: 3 operands after the flags ["a:1" "-count" "3"], want 1` + "\n",
		"ask -x a:1":                          "probe: flag provided but not defined: -x\nusage: probe ask",
		"ask a":                               `probe: "a": must be HOST:PORT, as in name:8080 or [fd00::1]:8080` + "\n",
		"ask :1":                              `probe: ":1": must be HOST:PORT`,
		"ask a:0":                             `probe: "a:0": "0" is no port` + "\n",
		"ask a:http":                          `probe: "a:http": "http" is no port` + "\n",
		"ask -count 0 a:1":                    "probe: -count=0: must be 1 or more\n",
		"ask -network ip a:1":                 "probe: -network=ip: must be tcp, tcp4, tcp6, udp, udp4 or udp6\n",
		"ask -timeout 0s a:1":                 "probe: -timeout=0s: must be positive\n",
		"load -rate 0 a:1":                    "probe: -rate=0: must be positive\n",
		"load -rate -1 a:1":                   "probe: -rate=-1: must be positive\n",
		"load -rate NaN a:1":                  "probe: -rate=NaN: must be positive\n",
		"load -inflight 0 a:1":                "probe: -inflight=0: must be 1 or more\n",
		"serve more":                          `probe: 1 operands after the flags ["more"], want 0` + "\n",
		"serve -tcp 80,":                      "probe: -tcp=80,: must be different ports, as in 8080,81\n",
		"serve -tcp 80,80":                    "probe: -tcp=80,80: must be different ports, as in 8080,81\n",
		"serve -udp 65536":                    "probe: -udp=65536: must be different ports, as in 8080,81\n",
		"serve -tcp= -udp=":                   "probe: no port: state -tcp or -udp\n",
		"resolve -type MX a":                  "probe: -type=MX: must be one of A, AAAA, PTR, SRV, TXT\n",
		"resolve -server a:53 a":              "probe: -server=a:53: must be IP:PORT, as in 10.96.0.10:53\n",
		"resolve -timeout -1s a":              "probe: -timeout=-1s: must be positive\n",
		"resolve -count 0 a":                  "probe: -count=0: must be 1 or more\n",
		"resolve -rate -2 a":                  "probe: -rate=-2: must be positive\n",
		"resolve a..b":                        `probe: "a..b" is no name` + "\n",
		"lookup -timeout 1s first the second": `probe: 3 operands after the flags`,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			var complaint bytes.Buffer
			w := here(t)
			w.err = &complaint
			if status := run(t.Context(), strings.Fields(args), w); status != 2 || !strings.HasPrefix(complaint.String(), want) {
				t.Errorf("status %d, want 2: %q, want %q", status, complaint.String(), want)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"help":      "usage: probe COMMAND",
		"-help":     "usage: probe COMMAND",
		"serve -h":  "usage: probe serve [flags]\n",
		"load -h":   "-rate float",
		"lookup -h": "usage: probe lookup [flags] NAME\n",
	} {
		var out bytes.Buffer
		w := here(t)
		w.out = &out
		if status := run(t.Context(), strings.Fields(args), w); status != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("probe %s: status %d, want 0: %q, want %q in it", args, status, out.String(), want)
		}
	}
}

// A port that somebody else has is no wrong argument.
func TestServeTakenPort(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var complaint bytes.Buffer
	w := here(t)
	w.err = &complaint
	status := run(t.Context(), []string{"serve", "-udp=", "-tcp", strconv.Itoa(portOf(listener.Addr()))}, w)
	if status != 1 || !strings.Contains(complaint.String(), "address already in use") {
		t.Errorf("status %d, want 1: %s", status, complaint.String())
	}
}

type fakeSocket struct{ family string }

func (fakeSocket) Close() error { return nil }

// A host may lack a family; a free port must be free in both.
func TestBindEach(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		port int
		// opens is what each opening gives, in order: a port, or an error.
		opens []any
		want  []fakeSocket
		bound int
		err   error
	}{
		"both":              {8080, []any{8080, 8080}, []fakeSocket{{"4"}, {"6"}}, 8080, nil},
		"no IPv6":           {8080, []any{8080, syscall.EAFNOSUPPORT}, []fakeSocket{{"4"}}, 8080, nil},
		"no IPv4":           {8080, []any{syscall.EAFNOSUPPORT, 8080}, []fakeSocket{{"6"}}, 8080, nil},
		"no address":        {8080, []any{8080, syscall.EADDRNOTAVAIL}, []fakeSocket{{"4"}}, 8080, nil},
		"none":              {8080, []any{syscall.EAFNOSUPPORT, syscall.EADDRNOTAVAIL}, nil, 0, syscall.EADDRNOTAVAIL},
		"taken":             {8080, []any{8080, syscall.EADDRINUSE}, nil, 0, syscall.EADDRINUSE},
		"any":               {0, []any{4000, 4000}, []fakeSocket{{"4"}, {"6"}}, 4000, nil},
		"any, taken in one": {0, []any{4000, syscall.EADDRINUSE, 4001, 4001}, []fakeSocket{{"4"}, {"6"}}, 4001, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := test.opens
			got, bound, err := bindEach(t.Context(), test.port, func(_ context.Context, family, address string) (fakeSocket, int, error) {
				next := left[0]
				left = left[1:]
				if err, ok := next.(error); ok {
					return fakeSocket{}, 0, err
				}
				return fakeSocket{family}, next.(int), nil
			})
			if !slices.Equal(got, test.want) || bound != test.bound || !isOrNil(err, test.err) || len(left) > 0 {
				t.Errorf("%v on %d, %v; want %v on %d, %v; %d openings left", got, bound, err, test.want, test.bound, test.err, len(left))
			}
		})
	}
}

func isOrNil(err, want error) bool {
	if want == nil {
		return err == nil
	}
	return errors.Is(err, want)
}
