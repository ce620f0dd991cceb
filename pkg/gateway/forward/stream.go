// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forward forwards TCP connections between clusters. An Importer accepts clients, and an Exporter connects to backends. Between
// them a stream of the gateway protocol carries the bytes; docs/gateway-protocol.md specifies it.
package forward

import (
	"errors"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"time"

	"github.com/tombolo-mcs/tombolo/pkg/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
)

// resetTimeout is the time for which a side that has sent RESET waits until its peer closes the connection.
const resetTimeout = 5 * time.Second

type state int

const (
	opening state = iota // the client's bytes are buffered
	open
	ended // all bytes were forwarded, or the stream was reset
)

// stream is a stream on one side: it copies between a local connection, that of a client or to a backend, and a connection between
// gateways.
type stream struct {
	local *tunnel.Local
	// bytes counts the bytes that were copied to and from the local connection.
	bytes func(sent, received int)

	mu sync.Mutex
	// conn and number do not change after the stream is open.
	conn                 *tunnel.Conn
	number               uint32
	state                state
	finSent, finReceived bool
	// finWritten is set when FIN was sent, and finSent before: the peer may answer at once.
	finWritten bool
	result     Result // how it has ended
	// over is closed when the stream has ended.
	over chan struct{}
	// unregister is called before the importing side may open another stream on the connection; it is used on the exporting side.
	unregister func()
}

// send copies from the local connection until its peer has sent all, or the stream has ended. The stream is open.
func (s *stream) send() {
	for {
		chunk, err := s.local.Read(math.MaxInt)
		switch {
		case errors.Is(err, io.EOF):
			s.sendFin()
			return
		case err != nil:
			s.reset(wire.CodeSocketReset)
			return
		}
		s.bytes(len(chunk.Bytes()), 0)
		if err := s.conn.SendData(s.number, chunk); err != nil {
			s.conn.Close() // the goroutine that reads from it ends the stream
			return
		}
	}
}

// sendFin does not hold the lock while it waits for a peer that does not read: receive needs it to take what the peer sends.
func (s *stream) sendFin() {
	s.mu.Lock()
	if s.state == ended {
		s.mu.Unlock()
		return
	}
	s.finSent = true
	s.mu.Unlock()
	if err := s.conn.Send(wire.TypeFin, s.number, nil); err != nil {
		s.conn.Close()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finWritten = true
}

// receive handles a DATA or FIN frame of the stream.
func (s *stream) receive(frame tunnel.Frame) error {
	s.mu.Lock()
	current, finReceived := s.state, s.finReceived
	s.mu.Unlock()
	switch {
	case current == ended: // sent before the peer has received RESET
		return nil
	case current == opening || finReceived:
		return wire.Violation("%s before OPENED or after FIN", frame.Type)
	case frame.Type == wire.TypeFin:
		_ = s.local.CloseWrite() // if the local peer has reset the connection, send finds it
		s.mu.Lock()
		defer s.mu.Unlock()
		s.finReceived = true
		return nil
	}
	s.bytes(0, len(frame.Payload))
	_, err := s.local.Write(frame.Payload)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded): // StopWriting
		return net.ErrClosed
	case err != nil:
		// The kernel reports a reset once, here or to send, which may take it for the end.
		s.reset(wire.CodeSocketReset)
	}
	return nil
}

// reset ends a stream whose local connection has failed.
func (s *stream) reset(code wire.Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == ended {
		return
	}
	s.abort(ResultLocalReset)
	if s.conn == nil {
		return
	}
	// RESET waits for frames that are being written, and a peer that does not read must not stop it for ever.
	deadline := time.Now().Add(resetTimeout)
	if s.conn.SetDeadline(deadline) != nil || s.conn.Send(wire.TypeReset, s.number, code.Encode()) != nil {
		s.conn.Close()
	}
}

// abort ends the stream and resets the local connection. The caller holds the lock.
func (s *stream) abort(result Result) {
	if s.state != ended {
		s.state, s.result = ended, result
		s.local.Abort()
		close(s.over)
	}
}

// end ends a stream whose bytes were all forwarded. The caller holds the lock.
func (s *stream) end() {
	s.state, s.result = ended, ResultDone
	s.local.Close()
	close(s.over)
}

// finish tells the importing side that all bytes of both directions were forwarded, if this is so.
func (s *stream) finish() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != open || !s.finWritten || !s.finReceived {
		return nil
	}
	s.end()
	s.unregister()
	if err := s.conn.SetReadDeadline(time.Now().Add(idleTimeout)); err != nil {
		return err
	}
	return s.conn.Send(wire.TypeDone, s.number, nil)
}

// isDone reports whether all bytes of both directions were forwarded.
func (s *stream) isDone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state == ended && s.result == ResultDone
}

// handle calls receive for each frame of a connection, until it returns an error or the connection is closed.
func handle(conn *tunnel.Conn, receive func(tunnel.Frame) error) error {
	for {
		frame, err := conn.Next()
		if err == nil {
			err = receive(frame)
		}
		if err != nil {
			return err
		}
	}
}

// resetError is a RESET of the other gateway.
type resetError struct{ code wire.Code }

func (e resetError) Error() string {
	return "the other gateway has reset the stream: " + e.code.String()
}

// errReset returns the error that a RESET means.
func errReset(frame tunnel.Frame) error {
	code, err := wire.DecodeReset(frame.Payload)
	if err != nil {
		return err
	}
	return resetError{code}
}

// refusalOf returns the refusal in an error; nil if there is none.
func refusalOf(err error) *wire.Refusal {
	var refusal *wire.Refusal
	errors.As(err, &refusal)
	return refusal
}
