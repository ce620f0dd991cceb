// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
)

// recordHeader is the length of the header of a TLS record (RFC 8446, section 5.2).
const recordHeader = 5

// maxAnswers is the number of bytes of TLS in the queue above which TLS gets nothing more to read, because it answers some records (KeyUpdate)
// itself. Bytes of streams do not count: if both sides wait with reading until they have sent, both wait for ever.
const maxAnswers = 256

// queueOf returns how many bytes the queue needs for a number of bytes: headers and authentication tags of their records, and records that are
// queued later although the other gateway does not read.
func queueOf(bytes int) int { return bytes + bytes/64 + 512 + maxAnswers }

// socket is a TCP connection below TLS: first of Go's network poller, for the handshake, then of a loop. It reads many records with one system
// call, and TLS gets each record in pieces that end with it, so that its own buffer stays as small as the longest one. In a loop it never
// blocks: Read returns errNothing, and Write accepts all, because an error of Write would end the connection for TLS.
type socket struct {
	*net.TCPConn
	loop    *loop.Socket // nil during the handshake
	steps   Steps        // during the handshake
	buffers *Buffers

	// in is the part of the buffer that TLS has not read, and left the rest of the record that TLS is reading.
	in     []byte
	buffer *buffer
	left   int
	next   int // the size of the next buffer

	// out are the records that the kernel has not taken, from start on. While holds is set, flush is what writes them.
	out   []byte
	start int
	used  *buffer
	holds bool
	// answers is how many of the bytes since the queue was empty are of TLS itself.
	answers int
}

// errNothing says that nothing is there now. TLS returns it and stays usable, because it is temporary.
var errNothing net.Error = nothingError{}

type nothingError struct{}

// Error implements net.Error.
func (nothingError) Error() string { return "nothing has arrived" }

// Timeout implements net.Error.
func (nothingError) Timeout() bool { return false }

// Temporary implements net.Error.
func (nothingError) Temporary() bool { return true }

// Read is for TLS only.
func (s *socket) Read(b []byte) (int, error) {
	for len(s.in) == 0 || s.left == 0 && len(s.in) < recordHeader {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	if s.left == 0 {
		s.left = recordHeader + int(binary.BigEndian.Uint16(s.in[3:]))
	}
	n := copy(b, s.in[:min(s.left, len(s.in))])
	s.left -= n
	s.in = s.in[n:]
	s.releaseEmpty()
	return n, nil
}

// fill reads what the kernel has. It keeps no large buffer if that is nothing.
func (s *socket) fill() (err error) {
	if s.loop != nil && (!s.loop.Readable || s.answers > maxAnswers) {
		return errNothing
	}
	s.move(s.buffers.take(s.next))
	room := s.buffer.data[len(s.in):]
	var n int
	if s.loop == nil {
		n, err = s.await(room)
	} else if n, err = s.loop.Read(room); err == nil && n == 0 {
		err = io.EOF
	}
	s.in = s.buffer.data[:len(s.in)+n]
	if n > 0 {
		s.next = nextSize(n, len(room))
	}
	if errors.Is(err, unix.EAGAIN) {
		err = errNothing
		if len(s.in) > 0 {
			s.move(s.buffers.take(recordHeader))
		}
	}
	s.releaseEmpty()
	if n > 0 {
		return nil
	}
	return err
}

// await waits until something is there, and reads it. It is for the handshake.
func (s *socket) await(b []byte) (n int, err error) {
	raw, err := s.SyscallConn()
	if err != nil {
		return 0, err
	}
	waits := false
	closed := raw.Read(func(fd uintptr) bool {
		n, err = unix.Read(int(fd), b)
		for errors.Is(err, unix.EINTR) {
			n, err = unix.Read(int(fd), b)
		}
		if !errors.Is(err, unix.EAGAIN) {
			return true
		}
		if !waits && s.steps.Wait != nil {
			waits = true
			s.steps.Wait()
		}
		return false
	})
	if waits {
		s.steps.Continue()
	}
	switch {
	case closed != nil:
		return 0, closed
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// move copies what TLS has not read to the start of another buffer: less than the header of a record.
func (s *socket) move(to *buffer) {
	n := copy(to.data, s.in)
	s.buffers.release(s.buffer)
	s.buffer, s.in = to, to.data[:n]
}

func (s *socket) releaseEmpty() {
	if len(s.in) == 0 {
		s.buffers.release(s.buffer)
		s.buffer, s.in = nil, nil
	}
}

func (s *socket) queued() int { return len(s.out) - s.start }

// Write is for TLS only. In a loop it accepts all.
func (s *socket) Write(b []byte) (int, error) {
	if s.loop == nil {
		return s.TCPConn.Write(b)
	}
	n := 0
	if !s.holds && s.queued() == 0 {
		n, _ = s.loop.Write(b) // an error is reported by the loop, and by the next flush
	}
	if !s.holds {
		s.answers += len(b) - n
	}
	if b = b[n:]; len(b) == 0 {
		return n, nil
	}
	if len(s.out)+len(b) > cap(s.out) && s.holds {
		s.flush()
	}
	s.extend(len(b))
	s.out = append(s.out, b...)
	return n + len(b), nil
}

// extend has the queue take a number of bytes more.
func (s *socket) extend(bytes int) {
	if len(s.out)+bytes <= cap(s.out) {
		return
	}
	to := s.buffers.need(s.queued() + bytes)
	s.out, s.start = append(to.data[:0], s.out[s.start:]...), 0
	s.buffers.release(s.used)
	s.used = to
}

// together writes the records that write produces, of a number of bytes, with as few system calls as possible.
func (s *socket) together(bytes int, write func() error) error {
	if s.loop == nil {
		return write()
	}
	s.holds = true
	s.extend(queueOf(bytes))
	err := write()
	s.holds = false
	s.flush()
	return err
}

// flush writes what is queued.
func (s *socket) flush() {
	n, _ := s.loop.Write(s.out[s.start:]) // see Write
	if s.start += n; s.start < len(s.out) {
		return
	}
	s.out, s.start, s.answers = s.out[:0], 0, 0
	if !s.holds {
		s.dropQueue()
	}
}

func (s *socket) dropQueue() {
	s.buffers.release(s.used)
	s.out, s.used, s.start = nil, nil, 0
}

// release gives the buffers back.
func (s *socket) release() {
	s.in = nil
	s.releaseEmpty()
	s.dropQueue()
}

// SetDeadline is for TLS, which sets none in a loop that matters.
func (s *socket) SetDeadline(t time.Time) error {
	if s.loop != nil {
		return nil
	}
	return s.TCPConn.SetDeadline(t)
}

// SetWriteDeadline is for TLS.
func (s *socket) SetWriteDeadline(t time.Time) error {
	if s.loop != nil {
		return nil
	}
	return s.TCPConn.SetWriteDeadline(t)
}
