// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
)

// Local is a connection of a client or to a backend. One goroutine at a time may call Read, and one Write.
type Local struct {
	*net.TCPConn
	raw     syscall.RawConn
	buffers *Buffers
	limit   int
	next    int // the size of the next buffer
	try     func(fd uintptr) bool
	chunk   Chunk
	err     error
}

// NewLocal returns a connection that reads into buffers.
func NewLocal(conn *net.TCPConn, buffers *Buffers) (*Local, error) {
	raw, err := conn.SyscallConn()
	l := &Local{TCPConn: conn, raw: raw, buffers: buffers}
	l.try = l.tryRead
	return l, err
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

// Read waits until bytes are there, and returns them, at most limit. It holds no buffer while it waits. The error is io.EOF if the peer
// has sent all.
func (l *Local) Read(limit int) (Chunk, error) {
	l.limit = limit
	if err := l.raw.Read(l.try); err != nil {
		return Chunk{}, err
	}
	return l.chunk, l.err
}

func (l *Local) tryRead(fd uintptr) bool {
	chunk := Chunk{buffer: l.buffers.take(l.next), buffers: l.buffers}
	room := chunk.buffer.data[wire.HeaderLength:]
	chunk.n, l.err = readOnce(fd, room[:min(l.limit, len(room))])
	if l.err != nil {
		chunk.Release()
		l.chunk = Chunk{}
		return !errors.Is(l.err, syscall.EAGAIN)
	}
	l.chunk, l.next = chunk, nextSize(chunk.n, len(room))
	return true
}

// StopWriting has Write return os.ErrDeadlineExceeded, also one that waits for a peer that does not read.
func (l *Local) StopWriting() { _ = l.SetWriteDeadline(time.Unix(1, 0)) }

// Abort closes the connection with a reset.
func (l *Local) Abort() {
	_ = l.SetLinger(0)
	l.Close()
}
