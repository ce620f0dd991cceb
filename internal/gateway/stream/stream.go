// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"errors"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

const (
	// MaxEarly is the number of client bytes that are sent without an answer, and kept for another attempt: as many as TCP sends at first
	// without an answer (10 segments, RFC 6928), so that more would seldom save a round trip. freeEarly of them need no memory.
	MaxEarly, freeEarly = 14600, 2 << 10
	// MaxAttempts is the number of links on which a stream is tried.
	MaxAttempts = 4
)

type phase uint8

const (
	opening phase = iota // the client's bytes are kept, or a backend is being connected
	open
	ended
)

// errSilent says that a gateway has not answered OPEN in time, or that something on the path has dropped the connection while it was idle.
var errSilent = errors.New("the other gateway has not answered in time")

// Stream is the state of one side of a stream. It has no socket, no clock and no lock (G6, G7).
type Stream struct {
	side  Side
	phase phase
	// localEnd is set when the local peer has sent all, and linkEnd when the other gateway has.
	localEnd, linkEnd         bool
	localBlocked, linkBlocked bool

	// The rest is for the importing side while it is opening. early are the client's bytes.
	early        []byte
	keepsAll     bool // MaxEarly bytes, not only freeEarly
	linked       bool // OPEN was sent on a link
	carried      bool // the link may carry bytes of the client
	unidentified bool
	attempts     int
	reuse        bool // a link stays open after REFUSED (version 2)
}

// New returns a stream that begins. unidentified is set if the request of an importing one does not say who the client is, but can.
func New(side Side, unidentified bool) Stream { return Stream{side: side, unidentified: unidentified} }

// ReadsLocal reports whether bytes of the local socket are wanted, and how many at most.
func (s *Stream) ReadsLocal() (int, bool) {
	switch {
	case s.phase == ended || s.localEnd || s.linkBlocked:
		return 0, false
	case s.phase == open:
		return wire.MaxData, true
	}
	most := freeEarly
	if s.keepsAll {
		most = MaxEarly
	}
	return most - len(s.early), s.side == Importing && len(s.early) < most
}

// KeepAll says that there is memory for MaxEarly bytes.
func (s *Stream) KeepAll() { s.keepsAll = true }

// ReadsLink reports whether frames of the other gateway are wanted.
func (s *Stream) ReadsLink() bool {
	return s.phase != ended && !s.localBlocked && (s.phase == open || s.side == Importing)
}

// LinkMayEnd reports whether the connection may have an end whose frames are not read yet: the other gateway has sent all, perhaps DONE.
func (s *Stream) LinkMayEnd() bool { return s.side == Importing && s.phase == open && s.localEnd }

// IsOpening and IsOver report in which phase the stream is.
func (s *Stream) IsOpening() bool { return s.phase == opening }

// IsOver reports whether the stream has ended.
func (s *Stream) IsOver() bool { return s.phase == ended }

// Reusable says that the link stays open after REFUSED: its version is 2 or newer.
func (s *Stream) Reusable(reuse bool) { s.reuse = reuse }

// Next changes the state by an event, and returns what is to be done. The error says that the other gateway has violated the protocol; then
// the link must be closed, with the event LinkLost.
func (s *Stream) Next(e Event, do []Action) ([]Action, error) {
	if s.phase == ended {
		return do, nil
	}
	switch e.Kind {
	case LocalBlocked:
		s.localBlocked = true
	case LocalDrained:
		s.localBlocked = false
	case LinkBlocked:
		s.linkBlocked = true
	case LinkDrained:
		s.linkBlocked = false
	case LocalFailed:
		return s.localFailed(do), nil
	case LocalEnd:
		s.localEnd = true
		if s.phase == open || s.linked {
			do = append(do, Action{Do: SendFin})
		}
		return s.done(do), nil
	case LocalData:
		return s.localData(e.Data, do), nil
	case LinkReset, LinkLost, Denied, Unlinked:
		return s.lost(e, do), nil
	case Begin, Linked, Identified, Late, Connected, LinkOpened:
		return s.opening(e.Kind, do)
	case LinkData, LinkFin, LinkDone:
		return s.frame(e, do)
	}
	return do, nil
}

func (s *Stream) localData(data []byte, do []Action) []Action {
	if s.phase == opening {
		s.early = append(s.early, data...)
		if len(s.early) >= freeEarly && !s.keepsAll {
			do = append(do, Action{Do: ReserveEarly})
		}
		if !s.linked {
			return do
		}
		s.carried = true
	}
	return append(do, Action{Do: SendData, Data: data})
}

// opening handles what happens before the stream is open.
func (s *Stream) opening(k Kind, do []Action) ([]Action, error) {
	switch {
	case s.phase != opening:
		if k == LinkOpened {
			return do, wire.Violation("OPENED twice")
		}
	case k == Begin && s.side == Importing:
		return append(do, Action{Do: Connect}), nil
	case k == Identified:
		s.unidentified = false
		return append(do, Action{Do: Connect}), nil
	case k == Linked:
		s.attempts++
		s.linked, s.carried = true, len(s.early) > 0
		return append(do, Action{Do: SendOpen, Data: s.early, End: s.localEnd}), nil
	case k == Late && s.linked && !s.carried:
		s.linked, s.linkBlocked = false, false
		return s.again(errSilent, true, 0, append(do, Action{Do: CloseLink})), nil
	case k == Connected:
		s.phase = open
		return append(do, Action{Do: SendOpened}), nil
	case k == LinkOpened && s.linked:
		s.phase, s.early = open, nil
		do = append(do, Action{Do: Open})
	case k == LinkOpened:
		return do, wire.Violation("OPENED without OPEN")
	}
	return do, nil
}

// frame handles the frames of an open stream.
func (s *Stream) frame(e Event, do []Action) ([]Action, error) {
	switch {
	case s.phase == opening || s.linkEnd && e.Kind != LinkDone:
		return do, wire.Violation("DATA, FIN or DONE before OPENED or after FIN")
	case e.Kind == LinkData:
		return append(do, Action{Do: WriteLocal, Data: e.Data}), nil
	case e.Kind == LinkFin:
		s.linkEnd = true
		return s.done(append(do, Action{Do: ShutLocal})), nil
	case s.side == Exporting || !s.localEnd || !s.linkEnd:
		return do, wire.Violation("DONE before both FINs")
	}
	s.phase = ended
	return append(do, Action{Do: Finish}, Action{Do: CloseLocal}, Action{Do: FreeLink}), nil
}

// done ends the exporting side when all bytes of both directions were forwarded.
func (s *Stream) done(do []Action) []Action {
	if s.side != Exporting || s.phase != open || !s.localEnd || !s.linkEnd {
		return do
	}
	s.phase = ended
	done := Action{Do: SendDone}
	if n := len(do) - 1; n >= 0 && do[n].Do == SendFin { // both in one write
		do, done.End = do[:n], true
	}
	return append(do, Action{Do: Finish}, Action{Do: CloseLocal}, done, Action{Do: FreeLink})
}

func (s *Stream) localFailed(do []Action) []Action {
	switch {
	case s.phase == opening && !s.linked:
	case s.linkBlocked: // RESET would wait for a gateway that may never read
		do = append(do, Action{Do: CloseLink})
	default:
		do = append(do, Action{Do: SendReset}, Action{Do: FinishLink})
	}
	return s.end(ErrLocal, do)
}

// lost handles what ends a stream, or an attempt to open it.
func (s *Stream) lost(e Event, do []Action) []Action {
	var refusal *wire.Refusal
	isRefused := errors.As(e.Err, &refusal)
	if s.side == Exporting {
		switch {
		case s.phase == opening && isRefused:
			return s.end(e.Err, append(do, Action{Do: SendRefused, Err: e.Err}))
		case e.Kind != LinkLost:
			do = append(do, Action{Do: CloseLink})
		}
		return s.end(e.Err, do)
	}
	hasLink := s.linked && e.Kind != LinkLost
	if s.phase == open || e.Kind == Denied || e.Kind == Unlinked && s.attempts >= MaxAttempts-1 {
		if hasLink {
			do = append(do, Action{Do: CloseLink})
		}
		return s.end(e.Err, do)
	}
	if e.Kind == Unlinked {
		s.attempts++
	}
	kept := hasLink && isRefused && s.reuse && !s.carried && !s.localEnd && !refusal.Code.EndsConnection()
	switch {
	case kept:
		do = append(do, Action{Do: FreeLink})
	case hasLink:
		do = append(do, Action{Do: CloseLink})
	}
	carried := s.carried && s.linked
	s.linked, s.linkBlocked = false, false
	switch {
	case isRefused && s.unidentified && (refusal.Code == wire.CodeUnidentified || refusal.Code == wire.CodeDenied):
		if s.attempts < MaxAttempts {
			return append(do, Action{Do: Identify})
		}
	case isRefused && refusal.Code == wire.CodeReconnect:
		return s.again(e.Err, true, 0, do)
	case isRefused && refusal.Code.Retryable():
		return s.again(e.Err, false, pause(s.attempts, refusal.Code), do)
	case !isRefused && !carried && !isReset(e.Err):
		return s.again(e.Err, false, 0, do)
	}
	return s.end(e.Err, do)
}

func isReset(err error) bool { var r ResetError; return errors.As(err, &r) }

// pauses are the times before the second and each further attempt, because a refusal is seldom over at once.
var pauses = [MaxAttempts]time.Duration{1: 50 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond}

// pause returns the time before the next attempt after a refusal. After a gateway that shuts down, another one is asked at once.
func pause(attempts int, code wire.Code) time.Duration {
	if code == wire.CodeShutdown && attempts == 1 {
		return 0
	}
	return pauses[min(attempts, MaxAttempts-1)]
}

// again tries the stream on another link, if there was not the last attempt.
func (s *Stream) again(err error, fresh bool, after time.Duration, do []Action) []Action {
	if s.attempts >= MaxAttempts {
		return s.end(err, do)
	}
	return append(do, Action{Do: Connect, Fresh: fresh, After: after})
}

func (s *Stream) end(err error, do []Action) []Action {
	s.phase, s.early = ended, nil
	return append(do, Action{Do: Finish, Err: err}, Action{Do: AbortLocal})
}
