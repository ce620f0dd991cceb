// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"errors"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

// Side says which side of a stream a Stream is.
type Side uint8

// The sides: that of the client, and that of the backend.
const (
	Importing Side = iota
	Exporting
)

// Kind is the kind of an event.
type Kind uint8

// The events. LocalData, LocalEnd and LocalFailed come from the socket of the client or the backend, Link... from the connection between the
// gateways.
const (
	Begin        Kind = iota
	LocalData         // Data was read
	LocalEnd          // the peer has sent all
	LocalFailed       // the socket was reset, or its peer is lost
	LocalBlocked      // the peer does not take more now
	LocalDrained      // all was written
	LinkBlocked       // the other gateway does not take more now
	LinkDrained       // all was written
	Linked            // importing: there is a link for the stream
	Unlinked          // importing: there is none, because of Err
	Identified        // importing: the request says who the client is
	Late              // importing: the other gateway has not answered OPEN for half of the time that the stream has
	Connected         // exporting: a backend is connected
	LinkOpened        // importing: OPENED
	LinkData          // DATA
	LinkFin           // FIN
	LinkReset         // RESET, or REFUSED; Err says why
	LinkDone          // importing: DONE
	LinkLost          // the connection has ended because of Err
	Denied            // the stream is not, or no longer, allowed, or not possible; Err says why
)

// Event is what has happened.
type Event struct {
	Kind Kind
	Data []byte
	Err  error
}

// Do is the kind of an action.
type Do uint8

// The actions, which are to be done in their order.
const (
	Connect      Do = iota // importing: ask for a link; a Fresh one is not one that is idle now
	Identify               // importing: find out who the client is
	ReserveEarly           // importing: call KeepAll if there is memory for more of the client's bytes
	SendOpen               // importing: OPEN, then Data if there is some, then FIN if End is set
	Open                   // importing: the stream is open
	SendOpened             // exporting
	SendData               // Data
	SendFin                // FIN
	SendReset              // RESET, because the local socket has failed
	SendRefused            // exporting: REFUSED because of Err
	SendDone               // exporting: DONE, with End after FIN
	WriteLocal             // Data
	ShutLocal              // say that nothing more will be written
	CloseLocal             // all was forwarded
	AbortLocal             // reset
	FreeLink               // it can carry another stream
	FinishLink             // close it after what was sent
	CloseLink              // close it now
	Finish                 // the stream has ended, because of Err; nil if all was forwarded
)

// Action is what is to be done.
type Action struct {
	Do    Do
	Data  []byte
	Err   error
	End   bool
	Fresh bool
	After time.Duration // Connect: the longest pause before
}

// ErrLocal says that the client or the backend has reset its connection, or is lost.
var ErrLocal = errors.New("the local connection was reset")

// ResetError is a RESET of the other gateway.
type ResetError struct{ Code wire.Code }

// Error returns the code.
func (e ResetError) Error() string {
	return "the other gateway has reset the stream: " + e.Code.String()
}
