// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// If clients do not read, the backends that send to them are held back, the gateways keep no more than their buffers, and the stream
// of another client is as fast as before.
//
// spec: G6, G12
func TestSlowReader(t *testing.T) { //nolint:paralleltest // it measures the memory of the process
	const (
		readers    = 8
		mostSent   = 64 << 20               // by one backend: what the sockets on the path can hold
		mostMemory = 16 << 20               // 16 large buffers of each gateway, and as much again
		held       = 500 * time.Millisecond // without progress: the backend cannot send
	)
	sent := make(chan int, readers)
	_, _, address := pair(t, func(conn *net.TCPConn) {
		defer conn.Close()
		first := make([]byte, 1)
		if _, err := conn.Read(first); err != nil {
			return
		}
		if first[0] == 'x' {
			_, _ = conn.Write(first)
			_, _ = io.Copy(conn, conn)
			return
		}
		sent <- fill(conn, make([]byte, 64<<10), held, 2*mostSent)
		_ = conn.SetWriteDeadline(time.Time{})
		_, _ = io.Copy(conn, zeros{})
	})
	beside := dial(t, address)
	before, began := memory(), pace(t, beside)
	var slow []*net.TCPConn
	for range readers {
		client := dial(t, address)
		_, err := io.WriteString(client, "z")
		check.Must(t, err)
		slow = append(slow, client)
	}
	total := 0
	for range readers {
		n := <-sent
		if n > mostSent {
			t.Errorf("a backend has sent %d bytes to a client that reads nothing", n)
		}
		total += n
	}
	grown, during := memory()-before, pace(t, beside)
	if grown > mostMemory {
		t.Errorf("the memory has grown by %d bytes", grown)
	}
	if during > 10*began+time.Second {
		t.Errorf("round trips of another client took %s, and %s beside slow readers", began, during)
	}
	check.Must(t, slow[0].SetReadDeadline(time.Now().Add(deadline))) // its backend continues as soon as it reads
	_, err := io.CopyN(io.Discard, slow[0], int64(total/readers)+8<<20)
	check.Must(t, err)
	t.Logf("%d backends have sent %d KiB each, memory has grown by %d KiB; round trips of another client: %s before, %s beside",
		readers, total/readers>>10, grown>>10, began, during)
}

// fill writes until nothing can be written for a time, at most a number of bytes, and returns how many it has written.
func fill(conn *net.TCPConn, b []byte, held time.Duration, most int) (n int) {
	for n < most {
		if conn.SetWriteDeadline(time.Now().Add(held)) != nil {
			return n
		}
		written, err := conn.Write(b)
		n += written
		if errors.Is(err, os.ErrDeadlineExceeded) && written > 0 {
			continue
		}
		if err != nil {
			return n
		}
	}
	return n
}

// memory returns the bytes that are in use.
func memory() int64 {
	runtime.GC()
	runtime.GC() // pools keep for one collection what is free
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// pace returns the time of 500 round trips.
func pace(t *testing.T, conn *net.TCPConn) time.Duration {
	t.Helper()
	began := time.Now()
	for range 500 {
		say(t, conn)
	}
	return time.Since(began).Round(time.Microsecond)
}
