// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"sync"
	"sync/atomic"

	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
)

// The sizes of buffers, in bytes. A small one holds a TLS record (RFC 8446, section 5.2: 16,645 bytes), and a tiny one each frame but DATA.
const (
	LargeSize = 256 << 10
	smallSize = 20 << 10
	tinySize  = 4864
)

// Buffers are the buffers that data moves through, shared by all streams of a gateway. A stream has none while it is idle. The memory of large
// buffers is limited, and that of small ones: beyond it buffers are tiny, so that streams whose peers do not read cannot use up the memory, and
// other streams still move. The three tiny buffers that a stream can keep, two for what it reads and one for what it sends, are part of
// budget.Stream.
type Buffers struct {
	// Loops move the data.
	Loops loop.Group

	large, small, tiny class
}

// class are the buffers of a size. The bytes that are used have a limit, but those of tiny buffers.
type class struct {
	sync.Pool
	size  int
	limit int64
	used  atomic.Int64
}

// NewBuffers returns buffers of which at most a number are large at a time; small ones have as much memory.
func NewBuffers(largest int) *Buffers {
	b := &Buffers{}
	b.large.size, b.small.size, b.tiny.size = LargeSize, smallSize, tinySize
	b.large.limit, b.small.limit = int64(largest)*LargeSize, int64(largest)*LargeSize
	for _, c := range []*class{&b.large, &b.small, &b.tiny} {
		c.New = func() any { return &buffer{data: make([]byte, c.size), class: c} }
	}
	return b
}

type buffer struct {
	data  []byte
	class *class
}

// get returns a buffer, whose bytes are counted already.
func (c *class) get() *buffer { return c.Get().(*buffer) }

// reserve counts bytes, and reports whether they are within the limit; otherwise it does not count them.
func (c *class) reserve(bytes int) bool {
	if c.used.Add(int64(bytes)) <= c.limit {
		return true
	}
	c.used.Add(-int64(bytes))
	return false
}

// take returns a buffer for at most a number of bytes: a smaller one if no memory is left.
func (b *Buffers) take(size int) *buffer {
	switch {
	case size > smallSize && b.large.reserve(LargeSize):
		return b.large.get()
	case size > tinySize && b.small.reserve(smallSize):
		return b.small.get()
	}
	return b.need(0)
}

// need returns a buffer for a number of bytes that are in another buffer, which is released now. So it exceeds the limit for a moment only.
func (b *Buffers) need(size int) *buffer {
	c := &b.tiny
	switch {
	case size > smallSize:
		c = &b.large
	case size > tinySize:
		c = &b.small
	}
	c.used.Add(int64(c.size))
	return c.get()
}

// early is the memory for early bytes of a client, and for the queue of their records.
const early = 2 * smallSize

// ReserveEarly reports whether a client may keep stream.MaxEarly bytes, which take memory of small buffers until ReleaseEarly.
func (b *Buffers) ReserveEarly() bool { return b.small.reserve(early) }

// ReleaseEarly gives the memory of ReserveEarly back.
func (b *Buffers) ReleaseEarly() { b.small.used.Add(-early) }

// Used returns the bytes of the buffers in use, and of early bytes.
func (b *Buffers) Used() int64 { return b.large.used.Load() + b.small.used.Load() + b.tiny.used.Load() }

// nextSize returns the size of the buffer for the next read after one that read n bytes into a buffer of this size: most reads are of small
// messages, and a stream that carries much fills its buffers.
func nextSize(n, size int) int {
	switch {
	case n == size:
		return LargeSize
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
	used.class.used.Add(-int64(used.class.size))
	used.class.Put(used)
}
