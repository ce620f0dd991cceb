// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"io"

	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

// Local is the socket of a client or a backend.
type Local struct {
	*loop.Socket
	buffers *Buffers
	next    int // the size of the next buffer
}

// NewLocal returns a socket that reads into buffers.
func NewLocal(socket *loop.Socket, buffers *Buffers) *Local {
	return &Local{Socket: socket, buffers: buffers}
}

// Chunk contains bytes of a stream, and room for the header of their frame.
type Chunk struct {
	buffer  *buffer
	buffers *Buffers
	n       int
}

// Bytes returns the bytes. They are valid until Release.
func (c Chunk) Bytes() []byte { return c.buffer.data[wire.HeaderLength : wire.HeaderLength+c.n] }

// Release gives the buffer back.
func (c Chunk) Release() { c.buffers.release(c.buffer) }

// Read returns bytes that are there, at most limit. The error is unix.EAGAIN if there are none now, and io.EOF if the peer has sent all.
func (l *Local) Read(limit int) (Chunk, error) {
	chunk := Chunk{buffer: l.buffers.take(l.next), buffers: l.buffers}
	room := chunk.buffer.data[wire.HeaderLength : 2*len(chunk.buffer.data)-queueOf(len(chunk.buffer.data))] // its records fit into a queue of this size
	n, err := l.Socket.Read(room[:min(limit, len(room))])
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		chunk.Release()
		return Chunk{}, err
	}
	chunk.n, l.next = n, nextSize(n, len(room))
	return chunk, nil
}
