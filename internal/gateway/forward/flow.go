// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forward forwards TCP connections between clusters. An Importer accepts clients, and an Exporter connects to backends. Between
// them a stream of the gateway protocol carries the bytes; docs/gateway-protocol.md specifies it. Package stream decides what is done, and
// package loop says when.
package forward

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"github.com/tombolo-mcs/tombolo/internal/gateway/stream"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

// maxTurns is the number of reads of a stream after which other sockets get their turn.
const maxTurns = 4

// flow moves the bytes of one side of a stream, as its Stream says. It belongs to one loop.
type flow struct {
	stream.Stream
	side  flowSide
	local *tunnel.Local // nil until it is there
	// conn is the connection to the other gateway; nil if there is none. It carries the stream with this number.
	conn   *tunnel.Conn
	number uint32
	// chunk is what was read from the local socket last, and pending what it has not taken: a part of the last frame.
	chunk   tunnel.Chunk
	pending []byte
	// prefix is written before the first bytes of the stream, with them if they are there already.
	prefix []byte
	// shut is set when nothing more will be written to the local socket.
	shut bool
	// bytes counts the bytes that were copied to and from the local socket.
	bytes func(sent, received int)
}

// flowSide is what importing and exporting flows do differently.
type flowSide interface {
	// perform does an action that flow.perform does not.
	perform(stream.Action)
	// receive handles a frame, and lost the end of the connection.
	receive(tunnel.Frame) error
	lost(error)
}

// on handles an event. A violation of the protocol ends the connection.
func (f *flow) on(e stream.Event) {
	var room [6]stream.Action
	actions, err := f.Next(e, room[:0])
	for _, a := range actions {
		f.perform(a)
	}
	if err != nil {
		f.side.lost(err)
	}
}

func (f *flow) perform(a stream.Action) {
	switch a.Do {
	case stream.SendData:
		f.sendData()
	case stream.SendFin:
		f.send(wire.TypeFin, nil)
	case stream.SendReset:
		f.send(wire.TypeReset, wire.CodeSocketReset.Encode())
	case stream.SendOpened:
		f.send(wire.TypeOpened, nil)
	case stream.WriteLocal:
		f.bytes(0, len(a.Data))
		f.write(a.Data)
	case stream.ShutLocal:
		f.write(nil)
		f.shut = true
		f.local.CloseWrite()
	case stream.CloseLocal:
		f.local.Close()
	case stream.AbortLocal:
		f.pending = nil
		if f.local != nil {
			f.local.Abort()
		}
	default:
		f.side.perform(a)
	}
}

// write writes bytes to the local socket, and the prefix before the first ones.
func (f *flow) write(data []byte) {
	if len(f.prefix) > 0 {
		data, f.prefix = append(f.prefix, data...), nil
	}
	if len(data) == 0 {
		return
	}
	f.pending = data
	f.writeLocal()
	if len(f.pending) > 0 {
		f.on(stream.Event{Kind: stream.LocalBlocked})
	}
}

// sendData sends what was read last.
func (f *flow) sendData() {
	chunk := f.chunk
	f.chunk = tunnel.Chunk{}
	if err := f.conn.SendData(f.number, chunk); err != nil {
		f.side.lost(err)
		return
	}
	f.sent()
}

func (f *flow) send(t wire.Type, payload []byte) {
	if f.conn == nil { // an action before has failed
		return
	}
	if err := f.conn.Send(t, f.number, payload); err != nil {
		f.side.lost(err)
		return
	}
	f.sent()
}

func (f *flow) sent() {
	if f.conn != nil && f.conn.Queued() > 0 {
		f.on(stream.Event{Kind: stream.LinkBlocked})
	}
}

// pump moves what can be moved.
func (f *flow) pump() {
	for range maxTurns {
		if f.IsOver() {
			return
		}
		moved := f.flush()
		if !f.IsOver() && f.readLocal() {
			moved = true
		}
		if !f.IsOver() && f.readLink() {
			moved = true
		}
		if !moved {
			return
		}
	}
	f.again()
}

// again has pump called once more.
func (f *flow) again() {
	switch {
	case f.IsOver():
	case f.local != nil:
		f.local.Again()
	case f.conn != nil:
		f.conn.Socket().Again()
	}
}

// flush writes what was not taken before.
func (f *flow) flush() (moved bool) {
	if len(f.pending) > 0 && f.local.Writable {
		moved = true
		f.writeLocal()
		if len(f.pending) == 0 {
			f.on(stream.Event{Kind: stream.LocalDrained})
		}
	}
	if f.conn != nil && f.conn.Queued() > 0 && f.conn.Socket().Writable {
		moved = true
		f.conn.Flush()
		if f.conn.Queued() == 0 {
			f.on(stream.Event{Kind: stream.LinkDrained})
		}
	}
	return moved
}

func (f *flow) writeLocal() {
	n, _ := f.local.Write(f.pending) // the failure is seen by readLocal, after what the peer has sent before it
	f.pending = f.pending[n:]
}

// readLocal reads once from the local socket, and sees that it has failed.
func (f *flow) readLocal() bool {
	l := f.local
	if l == nil {
		return false
	}
	limit, wanted := f.ReadsLocal()
	hasFailed := l.Failed || l.HungUp && !f.shut
	if !wanted || !l.Readable {
		if hasFailed {
			f.on(stream.Event{Kind: stream.LocalFailed})
		}
		return hasFailed
	}
	chunk, err := l.Read(limit)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return l.Failed
	case errors.Is(err, io.EOF) && !l.Failed:
		f.on(stream.Event{Kind: stream.LocalEnd})
		return true
	case err != nil:
		f.on(stream.Event{Kind: stream.LocalFailed})
		return true
	}
	f.bytes(len(chunk.Bytes()), 0)
	f.chunk = chunk
	f.on(stream.Event{Kind: stream.LocalData, Data: chunk.Bytes()})
	f.chunk.Release()
	f.chunk = tunnel.Chunk{}
	return true
}

// readLink handles the next frame, and sees that the connection has ended.
func (f *flow) readLink() bool {
	if f.conn == nil {
		return false
	}
	s := f.conn.Socket()
	if !f.ReadsLink() {
		if s.Failed || s.Ended && !f.LinkMayEnd() {
			f.side.lost(errLost)
			return true
		}
		return false
	}
	frame, ok, err := f.conn.Next()
	if err == nil && ok {
		err = f.side.receive(frame)
	}
	if err != nil {
		f.side.lost(err)
	}
	if err == nil && !ok && s.Failed {
		f.side.lost(errLost)
		return true
	}
	return ok || err != nil
}

// errReset returns the error that a RESET means.
func errReset(frame tunnel.Frame) error {
	code, err := wire.DecodeReset(frame.Payload)
	if err != nil {
		return err
	}
	return stream.ResetError{Code: code}
}

// refusalOf returns the refusal in an error; nil if there is none.
func refusalOf(err error) *wire.Refusal {
	var refusal *wire.Refusal
	errors.As(err, &refusal)
	return refusal
}
