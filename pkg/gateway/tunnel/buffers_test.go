// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"fmt"
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
