// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// The header of a TLS record, and the longest one (RFC 8446, section 5.2).
const (
	recordHeader  = 5
	longestRecord = recordHeader + 16<<10 + 256
)

// socket is a TCP connection below TLS. It reads many records with one system call, and writes the records of one frame with one.
// TLS gets each record in one piece and never a part of the next one, so that the socket knows whether reading will block.
type socket struct {
	*net.TCPConn
	raw     syscall.RawConn
	buffers *Buffers

	// in is the part of the buffer that TLS has not read, and left the rest of the record that TLS is reading.
	in     []byte
	buffer *buffer
	left   int
	next   int // the size of the next buffer
	// whole is set after the handshake: Read returns errNoRecord instead of waiting.
	whole bool
	try   func(fd uintptr) bool
	err   error // of the last try

	mu  sync.Mutex
	out []byte // the records of the frame that is being written; nil if there is none
}

// errNoRecord says that no whole record is there. TLS returns it and stays usable, because it is temporary.
var errNoRecord net.Error = noRecordError{}

type noRecordError struct{}

// Error implements net.Error.
func (noRecordError) Error() string { return "no whole TLS record has arrived" }

// Timeout implements net.Error.
func (noRecordError) Timeout() bool { return false }

// Temporary implements net.Error.
func (noRecordError) Temporary() bool { return true }

func newSocket(conn *net.TCPConn, buffers *Buffers) (*socket, error) {
	raw, err := conn.SyscallConn()
	s := &socket{TCPConn: conn, raw: raw, buffers: buffers}
	s.try = s.tryRead
	return s, err
}

// Read is for TLS only.
func (s *socket) Read(b []byte) (int, error) {
	if s.whole && s.left == 0 && !s.hasRecord() {
		return 0, errNoRecord
	}
	for len(s.in) == 0 || s.left == 0 && len(s.in) < recordHeader {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	if s.left == 0 {
		s.left = recordLength(s.in)
	}
	n := copy(b, s.in[:min(s.left, len(s.in))])
	s.left -= n
	s.in = s.in[n:]
	s.releaseEmpty()
	return n, nil
}

// await returns when a whole record is there, or when none can come. It must not be called while TLS reads a record.
func (s *socket) await() error {
	for !s.hasRecord() {
		if err := s.fill(); err != nil {
			return err
		}
	}
	return nil
}

// hasRecord reports whether TLS can read a record without waiting: a whole one, or one that it refuses because of its header.
func (s *socket) hasRecord() bool {
	if len(s.in) < recordHeader {
		return false
	}
	length := recordLength(s.in)
	return length > longestRecord || len(s.in) >= length
}

func recordLength(b []byte) int { return recordHeader + int(binary.BigEndian.Uint16(b[3:])) }

// fill reads what the kernel has, and waits until it has something. It holds no large buffer while it waits.
func (s *socket) fill() error {
	if err := s.raw.Read(s.try); err != nil {
		return err
	}
	return s.err
}

// tryRead reads once, and reports whether it did: the kernel may have nothing.
func (s *socket) tryRead(fd uintptr) bool {
	s.move(s.buffers.take(s.next))
	room := s.buffer.data[len(s.in):]
	n, err := readOnce(fd, room)
	if errors.Is(err, syscall.EAGAIN) {
		s.releaseEmpty()
		if s.buffer != nil {
			s.move(s.buffers.take(smallSize))
		}
		return false
	}
	s.in = s.buffer.data[:len(s.in)+n]
	s.err, s.next = err, nextSize(n, len(room))
	s.releaseEmpty()
	return true
}

// move copies what TLS has not read to the start of another buffer: less than one record.
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

// readOnce reads from a non-blocking file descriptor. The error is io.EOF at the end, and EAGAIN if nothing is there.
func readOnce(fd uintptr, b []byte) (int, error) {
	for {
		n, err := syscall.Read(int(fd), b)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Write is for TLS only. It stores the records of a frame until flush. Other records (alerts, updates of keys) are written at once, or
// after those of the frame.
func (s *socket) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out == nil {
		return s.TCPConn.Write(b)
	}
	if len(s.out)+len(b) > cap(s.out) {
		if err := s.writeOut(); err != nil {
			return 0, err
		}
		if len(b) > cap(s.out) {
			return s.TCPConn.Write(b)
		}
	}
	s.out = append(s.out, b...)
	return len(b), nil
}

// together writes the records that write produces, of a number of bytes, with as few system calls as possible.
func (s *socket) together(bytes int, write func() error) error {
	out := s.buffers.take(bytes + bytes/64 + 64) // headers and authentication tags
	defer s.buffers.release(out)
	s.mu.Lock()
	s.out = out.data[:0]
	s.mu.Unlock()
	err := write()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		err = s.writeOut()
	}
	s.out = nil
	return err
}

func (s *socket) writeOut() error {
	_, err := s.TCPConn.Write(s.out)
	s.out = s.out[:0]
	return err
}
