// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// get returns the status of a path on a connection of its own, 0 where there is none to be had.
func get(t *testing.T, port int, path string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + hostPort("127.0.0.1", port) + path)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(content)
}

// What a server says, on each of its ports.
func TestServeAnswer(t *testing.T) {
	t.Parallel()
	s := startServer(t, here(t), "-tcp", "0,0", "-udp", "0")
	for _, port := range s.tcp {
		want := fmt.Sprintf(`{"cluster":"cluster-1","pod":"pod-1","node":"node-1","port":%d,"client":"127.0.0.1"}`+"\n", port)
		if status, got := get(t, port, "/any/path"); status != http.StatusOK || got != want {
			t.Errorf("port %d: %d %q, want 200 %q", port, status, got, want)
		}
	}
	conn, err := net.Dial("udp4", hostPort("127.0.0.1", s.udp[0]))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, "hello"+strings.Repeat("!", maxEcho)); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	got, err := bufio.NewReader(conn).ReadString('\n')
	want := fmt.Sprintf(`{"cluster":"cluster-1","pod":"pod-1","node":"node-1","port":%d,"client":"127.0.0.1","echo":"hello%s"}`+"\n",
		s.udp[0], strings.Repeat("!", maxEcho-len("hello")))
	if err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// A datagram is answered from the address that it was sent to, though the route to its sender suggests another. The socket
// that asks is connected: the kernel gives it nothing from elsewhere.
func TestServeFromAddressAsked(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8 at hand")
	}
	s := startServer(t, here(t), "-tcp=", "-udp", "0")
	for _, address := range []string{"127.0.0.1", "127.0.0.2", "127.1.2.3"} {
		got := said[result](t, here(t), "ask", "-network", "udp4", "-timeout", patience.String(), hostPort(address, s.udp[0]))
		if len(got) != 1 || got[0].Error != "" || got[0].Address != address {
			t.Errorf("%s: %+v", address, got)
		}
	}
}

func TestServeUnready(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "unready")
	s := startServer(t, here(t), "-tcp", "0", "-udp=", "-unready", file)
	if status, text := get(t, s.tcp[0], "/readyz"); status != http.StatusOK || text != "ok\n" {
		t.Errorf("%d %q, want 200", status, text)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, text := get(t, s.tcp[0], "/readyz"); status != http.StatusServiceUnavailable || text != file+" exists\n" {
		t.Errorf("%d %q, want 503", status, text)
	}
	if status, text := get(t, s.tcp[0], "/"); status != http.StatusOK {
		t.Errorf("unready, it answers %d %q, want 200", status, text)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if status, text := get(t, s.tcp[0], "/readyz"); status != http.StatusOK {
		t.Errorf("%d %q, want 200 again", status, text)
	}
}

// After SIGTERM the server is unready at once, and serves on for as long as it was told to; then it takes no more, and
// finishes what is open.
func TestServeLinger(t *testing.T) {
	t.Parallel()
	s := startServer(t, here(t), "-tcp", "0", "-udp", "0", "-linger", "7s")
	s.terminate()
	if got := <-s.lingers; got != 7*time.Second {
		t.Errorf("lingers for %s, want 7s", got)
	}
	if status, text := get(t, s.tcp[0], "/readyz"); status != http.StatusServiceUnavailable || text != "stopping\n" {
		t.Errorf("/readyz: %d %q, want 503", status, text)
	}
	for _, network := range []string{"tcp4", "udp4"} {
		got := said[result](t, here(t), "ask", "-network", network, "-timeout", patience.String(), hostPort("127.0.0.1", s.port(network)))
		if len(got) != 1 || got[0].Error != "" {
			t.Errorf("%s, while it lingers: %+v", network, got)
		}
	}
	open, err := net.Dial("tcp4", hostPort("127.0.0.1", s.tcp[0]))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { open.Close() })
	if _, err := io.WriteString(open, "GET / HTTP/1.1\r\n"); err != nil {
		t.Fatal(err)
	}
	// The server reads what comes first, so it knows of the request once it has answered one that came later.
	if status, _ := get(t, s.tcp[0], "/"); status != http.StatusOK {
		t.Errorf("status %d, want 200", status)
	}
	s.over <- time.Time{}
	eventually(t, "no more is taken", func() bool {
		status, _ := get(t, s.tcp[0], "/")
		return status == 0
	})
	select {
	case status := <-s.status:
		t.Fatalf("ended with status %d while a request is open", status)
	default:
	}
	if _, err := io.WriteString(open, "Host: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(open), nil)
	if err != nil {
		t.Fatalf("the open request: %v", err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("the open request: %s", response.Status)
	}
	if status := <-s.status; status != 0 {
		t.Errorf("status %d, want 0", status)
	}
}

// The whole of it, as a process: a signal ends it with status 0.
func TestServeSignal(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "serve", "-tcp", "0", "-udp", "0", "-linger", "10ms")
	command.Env = append(os.Environ(), "PROBE_MAIN=1", "CLUSTER=blue", "POD=", "NODE=n")
	command.Stderr = t.Output()
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { command.Process.Kill() })
	var first serving
	if err := json.NewDecoder(out).Decode(&first); err != nil {
		t.Fatal(err)
	}
	port := first.Serving.TCP[0]
	want := `{"cluster":"blue","pod":"","node":"n","port":` + strconv.Itoa(port) + `,"client":"127.0.0.1"}` + "\n"
	if _, got := get(t, port, "/"); got != want {
		t.Error(cmp.Diff(want, got))
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("ended with %v, want status 0", err)
	}
}
