// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// Whatever streams take and keep, large buffers have no more memory than they may have, and small ones with early bytes no more than that. All
// memory is free at the end, and each stream gets at least tiny buffers.
//
// spec: G12
func TestBuffers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const largest = 2
		b := NewBuffers(largest)
		var held []*buffer
		early := 0
		add := func(got *buffer) { held = append(held, got) }
		sizes := rapid.SampledFrom([]int{0, 1, tinySize, tinySize + 1, smallSize, smallSize + 1, LargeSize})
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1: // read
				add(b.take(sizes.Draw(t, "size")))
			case 2: // the next peer takes nothing: a queue instead of what was read
				read := b.take(sizes.Draw(t, "size"))
				add(b.need(len(read.data)))
				b.release(read)
			case 3:
				if b.ReserveEarly() {
					early++
				}
			case 4:
				if n := len(held); n > 0 {
					b.release(held[n-1])
					held = held[:n-1]
				} else if early > 0 {
					b.ReleaseEarly()
					early--
				}
			}
			used := map[int]int{smallSize: early * 2 * smallSize}
			for _, h := range held {
				used[len(h.data)] += len(h.data)
			}
			for _, size := range []int{LargeSize, smallSize} {
				if used[size] > largest*LargeSize {
					t.Fatalf("buffers of %d bytes have %d bytes", size, used[size])
				}
			}
		}
		for _, h := range held {
			b.release(h)
		}
		for range early {
			b.ReleaseEarly()
		}
		b.release(nil)
		check.Equal(t, "bytes that are used at the end", int64(0), b.Used())
	})
}

// spec: G12
func TestTake(t *testing.T) {
	t.Parallel()
	b := NewBuffers(1)
	var got []int
	for _, size := range []int{LargeSize, LargeSize, smallSize, tinySize, 0} {
		got = append(got, len(b.take(size).data))
	}
	check.Equal(t, "bytes of buffers", []int{LargeSize, smallSize, smallSize, tinySize, tinySize}, got)
	for range LargeSize/smallSize - 2 {
		b.take(smallSize)
	}
	check.Equal(t, "bytes of a buffer after all", tinySize, len(b.take(LargeSize).data))
	check.Equal(t, "early bytes after all", false, b.ReserveEarly())
}

// Small messages get small buffers, and a stream that fills its buffers gets large ones. spec: G12
func TestNextSize(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ n, size, want int }{
		{0, smallSize, smallSize},
		{64, smallSize, smallSize},
		{smallSize - 1, smallSize, smallSize},
		{smallSize, smallSize, LargeSize},
		{LargeSize / 2, LargeSize, LargeSize},
		{64, LargeSize, smallSize},
		{LargeSize, LargeSize, LargeSize},
	} {
		check.Equal(t, fmt.Sprintf("after %d bytes in a buffer of %d", test.n, test.size), test.want, nextSize(test.n, test.size))
	}
}
