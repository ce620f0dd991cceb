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
	check.Equal(t, "bytes of three buffers", []int{largeSize, largeSize, smallSize}, []int{len(first.data), len(second.data), len(third.data)})
	b.release(third)
	check.Equal(t, "bytes of a buffer after the release of a small one", smallSize, len(b.take(largeSize).data))
	b.release(first)
	check.Equal(t, "bytes of a buffer after the release of a large one", largeSize, len(b.take(largeSize).data))
	check.Equal(t, "bytes of a buffer for few bytes", smallSize, len(b.take(smallSize).data))
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
		_, err := io.WriteString(client, text)
		check.Must(t, err)
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
