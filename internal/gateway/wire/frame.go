// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire encodes and decodes the frames that gateways exchange. docs/gateway-protocol.md specifies them.
package wire

import (
	"encoding/binary"
	"fmt"
)

// Type is the type of a frame.
type Type uint8

// The types of frames.
const (
	TypeHello Type = iota + 1
	TypeOpen
	TypeOpened
	TypeRefused
	TypeData
	TypeFin
	TypeReset
	TypeDone
	TypePing
	TypePong
	TypeGoaway
)

// The limits of a payload, in bytes.
const (
	MaxData    = 256<<10 - HeaderLength
	MaxControl = 4 << 10
)

// HeaderLength is the length of a frame's header, in bytes.
const HeaderLength = 8

// layout is what a frame's header may state.
type layout struct {
	name string
	// shortest and longest are the bounds of the payload.
	shortest, longest int
	scope             scope
}

type scope int

const (
	ofConnection scope = iota // stream number 0
	ofStream
)

func layoutOf(t Type) (layout, bool) {
	switch t {
	case TypeHello:
		return layout{"HELLO", helloLength, helloLength, ofConnection}, true
	case TypeOpen:
		return layout{"OPEN", 1, MaxControl, ofStream}, true
	case TypeOpened:
		return layout{"OPENED", 0, 0, ofStream}, true
	case TypeRefused:
		return layout{"REFUSED", codeLength, codeLength + MaxText, ofStream}, true
	case TypeData:
		return layout{"DATA", 1, MaxData, ofStream}, true
	case TypeFin:
		return layout{"FIN", 0, 0, ofStream}, true
	case TypeReset:
		return layout{"RESET", codeLength, codeLength, ofStream}, true
	case TypeDone:
		return layout{"DONE", 0, 0, ofStream}, true
	case TypePing:
		return layout{"PING", PingLength, PingLength, ofConnection}, true
	case TypePong:
		return layout{"PONG", PingLength, PingLength, ofConnection}, true
	case TypeGoaway:
		return layout{"GOAWAY", 0, 0, ofConnection}, true
	default:
		return layout{}, false
	}
}

// String returns the name of the type in the specification.
func (t Type) String() string {
	if l, known := layoutOf(t); known {
		return l.name
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Header is the header of a frame.
type Header struct {
	Type Type
	// Length is the length of the payload, in bytes.
	Length int
	// Stream is the number of the stream, 0 if the frame belongs to the connection.
	Stream uint32
}

// Put writes the header to the first HeaderLength bytes of b.
func (h Header) Put(b []byte) {
	binary.BigEndian.PutUint32(b, uint32(h.Type)<<24|uint32(h.Length))
	binary.BigEndian.PutUint32(b[4:], h.Stream)
}

// ParseHeader decodes the first HeaderLength bytes of b. The error is a *ProtocolError.
func ParseHeader(b []byte) (Header, error) {
	first := binary.BigEndian.Uint32(b)
	h := Header{Type: Type(first >> 24), Length: int(first & 0xffffff), Stream: binary.BigEndian.Uint32(b[4:])}
	l, known := layoutOf(h.Type)
	switch {
	case !known:
		return Header{}, Violation("unknown frame type %d", uint8(h.Type))
	case h.Length < l.shortest || h.Length > l.longest:
		return Header{}, Violation("%s with %d bytes", h.Type, h.Length)
	case (h.Stream == 0) != (l.scope == ofConnection):
		return Header{}, Violation("%s with stream number %d", h.Type, h.Stream)
	}
	return h, nil
}

// Append appends a frame to b. The payload must be within the limits of the type.
func Append(b []byte, t Type, stream uint32, payload []byte) []byte {
	var head [HeaderLength]byte
	Header{t, len(payload), stream}.Put(head[:])
	return append(append(b, head[:]...), payload...)
}

// ProtocolError is a violation of the specification by the peer. The connection is closed.
type ProtocolError struct{ Text string }

// Error returns the text.
func (e *ProtocolError) Error() string { return "gateway protocol: " + e.Text }

// Violation returns a *ProtocolError with a text.
func Violation(format string, args ...any) error {
	return &ProtocolError{Text: fmt.Sprintf(format, args...)}
}
