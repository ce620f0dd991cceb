// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unicode/utf8"
)

// OldestVersion and Version are the range of versions of the protocol that this package implements.
const (
	OldestVersion = 1
	Version       = 2
)

// Versions returns the versions of the protocol that this package implements, in ascending order.
func Versions() []int32 { return []int32{OldestVersion, Version} }

// HasCommon reports whether one of the versions of another gateway is one of this package.
func HasCommon(versions []int32) bool {
	return slices.ContainsFunc(versions, func(v int32) bool { return slices.Contains(Versions(), v) })
}

// MaxText is the longest text of a refusal, in bytes.
const MaxText = 256

const (
	helloLength = 5
	codeLength  = 2
)

// PingLength is the length of the payload of PING and PONG, in bytes.
const PingLength = 8

// Role says which side of a connection opens streams.
type Role uint8

// The roles. 1 is reserved for a dialer that accepts streams (W5).
const (
	RoleDialerOpens Role = 0
	RoleReserved    Role = 1
)

// Hello is the payload of HELLO, the first frame in each direction.
type Hello struct {
	// Oldest and Newest are the range of versions of the sender.
	Oldest, Newest uint16
	Role           Role
}

// Encode returns the payload.
func (h Hello) Encode() []byte {
	b := binary.BigEndian.AppendUint16(nil, h.Oldest)
	return append(binary.BigEndian.AppendUint16(b, h.Newest), byte(h.Role))
}

// DecodeHello decodes the payload of HELLO.
func DecodeHello(b []byte) (Hello, error) {
	if len(b) != helloLength {
		return Hello{}, Violation("HELLO with %d bytes", len(b))
	}
	h := Hello{binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), Role(b[4])}
	if h.Oldest == 0 || h.Oldest > h.Newest {
		return Hello{}, Violation("HELLO with versions %d to %d", h.Oldest, h.Newest)
	}
	return h, nil
}

// Negotiate returns the newest version of both ranges, or an error if they have none in common or the roles differ.
func Negotiate(ours, theirs Hello) (uint16, error) {
	if ours.Role != theirs.Role {
		return 0, Violation("role %d is not supported", theirs.Role)
	}
	version := min(ours.Newest, theirs.Newest)
	if version < ours.Oldest || version < theirs.Oldest {
		return 0, Violation("no common version: %d to %d, and %d to %d", ours.Oldest, ours.Newest, theirs.Oldest, theirs.Newest)
	}
	return version, nil
}

// Code is the reason of REFUSED or RESET. A receiver accepts codes that it does not know.
type Code uint16

// The codes.
const (
	CodeInternal Code = iota + 1
	CodeMalformedOpen
	CodeShutdown
	CodeLimit
	CodeNotExported
	CodeDenied
	CodeNoEndpoint
	CodeUnreachable
	CodeSocketReset
	CodeTimeout
	CodeReconnect
	CodeUnidentified
)

// codeNames are the names of the codes in the specification and in metrics, from 1 on.
var codeNames = [...]string{
	"Internal", "MalformedOpen", "Shutdown", "Limit", "NotExported", "Denied", "NoEndpoint", "Unreachable", "SocketReset", "Timeout",
	"Reconnect", "Unidentified",
}

// String returns the name of the code; Code and its number if the specification has none.
func (c Code) String() string {
	if !c.IsKnown() {
		return fmt.Sprintf("Code%d", uint16(c))
	}
	return codeNames[c-1]
}

// IsKnown reports whether the specification has a name for the code.
func (c Code) IsKnown() bool { return c > 0 && int(c) <= len(codeNames) }

// Retryable reports whether another gateway of the cluster can give another answer.
func (c Code) Retryable() bool {
	switch c {
	case CodeInternal, CodeShutdown, CodeLimit, CodeNotExported, CodeNoEndpoint, CodeUnreachable, CodeReconnect:
		return true
	default:
		return false
	}
}

// EndsConnection reports whether the connection is closed after REFUSED with this code, whatever its version.
func (c Code) EndsConnection() bool {
	return c == CodeMalformedOpen || c == CodeShutdown || c == CodeReconnect
}

// Encode returns the payload of RESET.
func (c Code) Encode() []byte { return binary.BigEndian.AppendUint16(nil, uint16(c)) }

// DecodeReset decodes the payload of RESET.
func DecodeReset(b []byte) (Code, error) {
	if len(b) != codeLength {
		return 0, Violation("RESET with %d bytes", len(b))
	}
	return Code(binary.BigEndian.Uint16(b)), nil
}

// Refusal is the payload of REFUSED: no byte of the client has reached a backend (G7).
type Refusal struct { //nolint:errname // it is a frame, too
	Code Code
	// Text is for the log of the importing gateway.
	Text string
}

// Error returns the code and the text.
func (r *Refusal) Error() string { return "refused: " + r.Code.String() + ": " + r.Text }

// Encode returns the payload. It cuts a text that is too long.
func (r *Refusal) Encode() []byte {
	text := r.Text
	for len(text) > MaxText || !utf8.ValidString(text) {
		text = text[:min(MaxText, len(text)-1)]
	}
	return append(r.Code.Encode(), text...)
}

// DecodeRefusal decodes the payload of REFUSED.
func DecodeRefusal(b []byte) (*Refusal, error) {
	if len(b) < codeLength || len(b) > codeLength+MaxText || !utf8.Valid(b[codeLength:]) {
		return nil, Violation("REFUSED is malformed")
	}
	return &Refusal{Code(binary.BigEndian.Uint16(b)), string(b[codeLength:])}, nil
}
