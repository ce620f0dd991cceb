// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// scripted is a server of TCP that does to each connection what its script says, and notes it.
type scripted struct {
	port int
	// connections counts those until the one that the test itself makes at the end.
	connections chan int
}

// startScripted handles the connections one after the other; handle gets the number of each, from 0.
func startScripted(t *testing.T, handle func(number int, conn net.Conn, reader *bufio.Reader)) *scripted {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	lab.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	s := &scripted{port: portOf(listener.Addr()), connections: make(chan int, 1)}
	go func() {
		for number := 0; ; number++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			reader := bufio.NewReader(conn)
			if first, err := reader.Peek(3); err == nil && string(first) == "end" {
				s.connections <- number
				conn.Close()
				return
			}
			handle(number, conn, reader)
			conn.Close()
		}
	}()
	return s
}

// count returns how many connections there were. Connections are taken in the order in which they were made.
func (s *scripted) count(t *testing.T) int {
	t.Helper()
	conn, err := net.Dial("tcp4", hostPort("127.0.0.1", s.port))
	lab.Must(t, err)
	defer conn.Close()
	if _, err := io.WriteString(conn, "end"); err != nil {
		t.Fatal(err)
	}
	return <-s.connections
}

func httpReply(conn net.Conn, reader *bufio.Reader, pod string) {
	if request, err := http.ReadRequest(reader); err == nil {
		body := `{"pod":"` + pod + `"}`
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
		request.Body.Close()
	}
}

// One request is one connection and one request on it, whatever goes wrong.
func TestAskNeverTwice(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args   []string
		handle func(number int, conn net.Conn, reader *bufio.Reader)
		// want has the pod that answers each request, or the beginning of the error.
		want        []string
		connections int
	}{
		"closed at once": {
			args: []string{"-count=2"},
			handle: func(number int, conn net.Conn, reader *bufio.Reader) {
				if number > 0 {
					httpReply(conn, reader, "good")
				}
			},
			want: []string{"no answer: ", "good"}, connections: 2,
		},
		"closed after the request": {
			args: []string{"-count=3"},
			handle: func(number int, conn net.Conn, reader *bufio.Reader) {
				if number == 0 {
					http.ReadRequest(reader)
					return
				}
				httpReply(conn, reader, "good")
			},
			want: []string{"no answer: ", "good", "good"}, connections: 3,
		},
		// net/http's transport would make a new connection for the second request.
		"kept and closed between requests": {
			args:   []string{"-count=3", "-keep"},
			handle: func(_ int, conn net.Conn, reader *bufio.Reader) { httpReply(conn, reader, "good") },
			want:   []string{"good", "", "the one connection has failed before: "}, connections: 1,
		},
		"half an answer": {
			handle: func(_ int, conn net.Conn, _ *bufio.Reader) {
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
			},
			want: []string{"half an answer: "}, connections: 1,
		},
		"another status": {
			handle: func(_ int, conn net.Conn, _ *bufio.Reader) {
				io.WriteString(conn, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
			},
			want: []string{"status 503 Service Unavailable"}, connections: 1,
		},
		"another answer": {
			handle: func(_ int, conn net.Conn, _ *bufio.Reader) {
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
			},
			want: []string{"not an answer of probe: "}, connections: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startScripted(t, func(number int, conn net.Conn, reader *bufio.Reader) {
				// What was sent is read, so that closing is no reset that overtakes the answer.
				reader.Peek(1)
				reader.Peek(reader.Buffered())
				test.handle(number, conn, reader)
			})
			args := append([]string{"ask", "-timeout", waitLimit.String()}, test.args...)
			got := runLines[result](t, here(t), append(args, hostPort("127.0.0.1", s.port))...)
			if len(got) != len(test.want) {
				t.Fatalf("%d lines, want %d: %+v", len(got), len(test.want), got)
			}
			for i, r := range got {
				if failed := r.Error != ""; failed == (test.want[i] == "good") || !strings.HasPrefix(r.Pod+r.Error, test.want[i]) {
					t.Errorf("request %d: %+v, want %q", i, r, test.want[i])
				}
			}
			if count := s.count(t); count != test.connections {
				t.Errorf("%d connections, want %d", count, test.connections)
			}
		})
	}
}

// A datagram that is lost is lost: none is sent in its place.
func TestAskNeverTwiceUDP(t *testing.T) {
	t.Parallel()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	lab.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	to := conn.LocalAddr().String()
	got := runLines[result](t, here(t), "ask", "-network", "udp4", "-timeout", "5s", "-count", "2", to)
	for _, r := range got {
		if !strings.Contains(r.Error, "i/o timeout") || r.MS < 5000 {
			t.Errorf("got %+v, want a timeout", r)
		}
	}
	mark, err := net.Dial("udp4", to)
	lab.Must(t, err)
	t.Cleanup(func() { mark.Close() })
	if _, err := io.WriteString(mark, "end"); err != nil {
		t.Fatal(err)
	}
	received := 0
	for buffer := make([]byte, maxDatagram); ; received++ {
		n, _, err := conn.ReadFrom(buffer)
		lab.Must(t, err)
		if string(buffer[:n]) == "end" {
			break
		}
	}
	if received != 2 || len(got) != 2 {
		t.Errorf("%d datagrams arrived of %d requests, want 2 of 2", received, len(got))
	}
}
