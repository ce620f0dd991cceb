// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package handshakes

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// spec: G6
func TestStageOf(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first  []byte
		number int
		want   stage
	}{
		"one byte":               {[]byte{22}, 1, partial},
		"a part":                 {[]byte{22, 3, 1, 2, 0}, 100, partial},
		"a whole record":         {[]byte{22, 3, 1, 2, 0}, 517, complete},
		"more":                   {[]byte{22, 3, 1, 2, 0}, 1000, complete},
		"a record too long":      {[]byte{22, 3, 1, 255, 255}, longestRecord, complete},
		"another protocol":       {[]byte("GET /"), 5, complete},
		"a letter of another":    {[]byte("G"), 1, complete},
		"a record without bytes": {[]byte{22, 3, 1, 0, 0}, 5, complete},
	} {
		check.Equal(t, name, test.want, stageOf(test.first, test.number))
	}
}

func (a *Acceptor) numberOf(s stage) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pending.stages[s].Len()
}

// A handshake begins when its ClientHello is complete, whatever the others send. If there are too many, the oldest silent ones are closed.
//
// spec: G6, G12
func TestAccept(t *testing.T) {
	t.Parallel()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check.Must(t, err)
	const most = 10
	begun, ended, failed := make(chan string, 1), make(chan error), make(chan error, 10*most)
	a := &Acceptor{
		Begin: func(conn *net.TCPConn, handshake *Handshake) {
			defer conn.Close()
			defer handshake.End()
			handshake.Wait()
			handshake.Continue()
			first := make([]byte, 6)
			_, err := io.ReadFull(conn, first)
			if err != nil {
				t.Error(err)
			}
			begun <- string(first)
		},
		Closed:  func(_ *net.TCPConn, reason error) { failed <- reason },
		pending: pending{maxPending: most, maxBegun: 1, maxWorking: 1},
	}
	go func() { ended <- a.Accept(context.Background(), listener) }()
	dial := func() *net.TCPConn {
		conn, err := net.Dial("tcp", listener.Addr().String())
		check.Must(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn.(*net.TCPConn)
	}
	const record = "\x16\x03\x01\x00\x01x"
	for range 3 {
		slow := dial()
		_, err := io.WriteString(slow, record[:3])
		check.Must(t, err)
		for began := time.Now(); a.numberOf(partial) == 0; time.Sleep(time.Millisecond) { //nolint:forbidigo // until the bytes have arrived
			if time.Since(began) > time.Minute {
				t.Fatal("the part of a ClientHello is not found")
			}
		}
		var others []*net.TCPConn
		for range most {
			others = append(others, dial())
		}
		if reason := <-failed; !errors.Is(reason, errTooFar) {
			t.Errorf("a connection is closed: %v", reason)
		}
		check.Must(t, others[0].SetReadDeadline(time.Now().Add(time.Minute)))
		if _, err := others[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the oldest silent connection: %v", err)
		}
		_, err = io.WriteString(slow, record[3:])
		check.Must(t, err)
		check.Equal(t, "what the peer has sent", record, <-begun)
		for _, other := range others[1:] { // a handshake does not begin
			check.Must(t, other.Close())
			<-failed
		}
	}
	listener.Close()
	check.Must(t, <-ended)
}
