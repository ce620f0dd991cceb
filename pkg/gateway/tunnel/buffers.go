// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"sync"
	"sync/atomic"

	"github.com/tombolo-mcs/tombolo/pkg/gateway/loop"
)

// The sizes of buffers, in bytes. A small one holds a TLS record (RFC 8446, section 5.2: 16,645 bytes).
const (
	largeSize = 256 << 10
	smallSize = 20 << 10
)

// Buffers are the buffers that data moves through, shared by all streams of a gateway. A stream has none while it is idle. A limited
// number of them is large: beyond it buffers are small, so that streams whose peers do not read cannot use up the memory.
type Buffers struct {
	// Loops move the data.
	Loops loop.Group

	large, small sync.Pool
	free         atomic.Int64 // large ones
}

// NewBuffers returns buffers of which at most a number are large at a time.
func NewBuffers(largest int) *Buffers {
	b := &Buffers{}
	b.large.New = func() any { return &buffer{data: make([]byte, largeSize), pool: &b.large} }
	b.small.New = func() any { return &buffer{data: make([]byte, smallSize), pool: &b.small} }
	b.free.Store(int64(largest))
	return b
}

type buffer struct {
	data []byte
	pool *sync.Pool
}

// take returns a buffer for a number of bytes: a small one if that is sufficient, or if all large ones are in use.
func (b *Buffers) take(size int) *buffer {
	if size <= smallSize {
		return b.small.Get().(*buffer)
	}
	if b.free.Add(-1) < 0 {
		b.free.Add(1)
		return b.small.Get().(*buffer)
	}
	return b.large.Get().(*buffer)
}

// nextSize returns the size of the buffer for the next read after one that read n bytes into a buffer of this size: most reads are of small
// messages, and a stream that carries much fills its buffers.
func nextSize(n, size int) int {
	switch {
	case n == size:
		return largeSize
	case n < smallSize/2:
		return smallSize
	}
	return size
}

// release takes back a buffer, which may be nil.
func (b *Buffers) release(used *buffer) {
	if used == nil {
		return
	}
	if used.pool == &b.large {
		b.free.Add(1)
	}
	used.pool.Put(used)
}
