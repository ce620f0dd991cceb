// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/tombolo-mcs/tombolo/e2e/framework/check"
)

// spec: G12
func TestBuffers(t *testing.T) {
	t.Parallel()
	b := NewBuffers(2)
	first, second, third := b.take(largeSize), b.take(smallSize+1), b.take(largeSize)
	if len(first.data) != largeSize || len(second.data) != largeSize || len(third.data) != smallSize {
		t.Errorf("buffers of %d, %d and %d bytes, want two large ones and a small one", len(first.data), len(second.data), len(third.data))
	}
	b.release(third)
	if again := b.take(largeSize); len(again.data) != smallSize {
		t.Errorf("the release of a small buffer allows one of %d bytes", len(again.data))
	}
	b.release(first)
	if again := b.take(largeSize); len(again.data) != largeSize {
		t.Errorf("after the release of a large buffer, the next one has %d bytes", len(again.data))
	}
	if again := b.take(smallSize); len(again.data) != smallSize {
		t.Errorf("a buffer for few bytes has %d", len(again.data))
	}
	b.release(nil)
}

// Small messages get small buffers, and a stream that fills its buffers gets large ones. spec: G12
func TestNextSize(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ n, size, want int }{
		{0, smallSize, smallSize},
		{64, smallSize, smallSize},
		{smallSize - 1, smallSize, smallSize},
		{smallSize, smallSize, largeSize},
		{largeSize / 2, largeSize, largeSize},
		{64, largeSize, smallSize},
		{largeSize, largeSize, largeSize},
	} {
		check.Equal(t, fmt.Sprintf("after %d bytes in a buffer of %d", test.n, test.size), test.want, nextSize(test.n, test.size))
	}
}

// A local connection holds a buffer only from Read to Release. spec: G12
func TestLocalHoldsNoBuffer(t *testing.T) {
	t.Parallel()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check.Must(t, err)
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	check.Must(t, err)
	defer client.Close()
	accepted, err := listener.AcceptTCP()
	check.Must(t, err)
	defer accepted.Close()
	b := NewBuffers(3)
	local, err := NewLocal(accepted, b)
	check.Must(t, err)
	for _, text := range []string{"first", "second"} {
		if _, err := io.WriteString(client, text); err != nil {
			t.Fatal(err)
		}
		local.next = largeSize
		chunk, err := local.Read(len(text))
		if err != nil || string(chunk.Bytes()) != text || b.free.Load() != 2 {
			t.Errorf("read %q, error %v, %d large buffers are free, want 2", chunk.Bytes(), err, b.free.Load())
		}
		chunk.Release()
	}
	client.Close()
	local.next = largeSize
	if _, err := local.Read(1); !errors.Is(err, io.EOF) || b.free.Load() != 3 {
		t.Errorf("at the end: error %v, %d large buffers are free, want 3", err, b.free.Load())
	}
}
