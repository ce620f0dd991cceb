// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

// model is a client, its importing gateway, links, exporting gateways and backends: two sides of streams, and queues between them. What
// happens next is drawn.
type model struct {
	t       *testing.T
	random  *rand.Rand
	trace   strings.Builder
	version int
	faults  bool // drawn as long as it is set

	importing   Stream
	client      local
	link        *path // of the importing stream; nil if there is none
	linkBlocked bool
	waits       bool // for a link
	waitFor     string
	links       []*path
	attempts    int
	requests    int // backends that got bytes of the client
	finished    bool
	result      error
}

// local is a client or a backend as its gateway sees it.
type local struct {
	got, said     []byte
	gone          bool // the socket is closed
	ended, shut   bool // it has sent all, or was told that the other has
	blocked       bool
	pending       []byte // not taken, because it is blocked
	reset, closed bool   // how the gateway has ended it
}

// path is a connection between gateways.
type path struct {
	there, back       []frame // on their way, oldest first
	closing           bool    // by the importing side, after what was sent
	gone              bool
	exporting         *Stream // the last stream; nil before the first
	connects, refused bool
	backend           local
	idle              bool // for the importing side
}

type frame struct {
	kind wire.Type
	data []byte
	err  error
}

func (m *model) logf(format string, args ...any) { fmt.Fprintf(&m.trace, format+"\n", args...) }

func (m *model) fatalf(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf(format+"\n%s", append(args, m.trace.String())...)
}

// imports gives the importing stream an event, and does what it says.
func (m *model) imports(e Event) {
	m.logf("importing: %d %q %v", e.Kind, e.Data, e.Err)
	wasOver := m.importing.IsOver()
	actions, err := m.importing.Next(e, nil)
	if wasOver && len(actions) > 0 {
		m.fatalf("a stream that is over acts: %v", actions)
	}
	if err != nil {
		m.fatalf("the exporting side violates the protocol: %v", err)
	}
	for _, a := range actions {
		m.logf("  does %d %q", a.Do, a.Data)
		send := func(f frame) {
			if m.link == nil {
				m.fatalf("there is no link for action %d", a.Do)
			}
			m.link.there = append(m.link.there, f)
		}
		switch a.Do {
		case Connect:
			m.waits = true
			if m.link != nil {
				m.fatalf("a stream with a link asks for one")
			}
		case ReserveEarly:
			m.importing.KeepAll()
		case Identify:
			m.waits, m.waitFor = true, "identity"
		case SendOpen:
			send(frame{kind: wire.TypeOpen})
			if len(a.Data) > 0 {
				send(frame{kind: wire.TypeData, data: bytes.Clone(a.Data)})
			}
			if a.End {
				send(frame{kind: wire.TypeFin})
			}
		case SendData:
			send(frame{kind: wire.TypeData, data: bytes.Clone(a.Data)})
		case SendFin:
			send(frame{kind: wire.TypeFin})
		case SendReset:
			send(frame{kind: wire.TypeReset, err: ResetError{wire.CodeSocketReset}})
		case FinishLink:
			m.link.closing = true
			m.link = nil
		case FreeLink:
			m.link.idle = true
			m.link = nil
		case CloseLink:
			m.cut(m.link)
			m.link = nil
		case Finish:
			if m.finished {
				m.fatalf("the stream ends twice")
			}
			m.finished, m.result = true, a.Err
			if m.link != nil && a.Err != nil {
				m.fatalf("the stream keeps its link after %v", a.Err)
			}
		default:
			if m.act(&m.client, a) {
				m.imports(Event{Kind: LocalBlocked})
			}
		}
	}
}

// act does an action with a client or a backend, and reports whether that is blocked now.
func (m *model) act(l *local, a Action) (blocked bool) {
	if l.blocked && (a.Do == WriteLocal || a.Do == ShutLocal || a.Do == CloseLocal) {
		m.fatalf("action %d while not all was taken", a.Do)
	}
	switch a.Do {
	case WriteLocal:
		if m.faults && m.random.IntN(4) == 0 {
			l.pending, l.blocked = bytes.Clone(a.Data), true
			return true
		}
		l.got = append(l.got, a.Data...)
	case ShutLocal:
		l.shut = true
	case CloseLocal:
		l.gone, l.closed = true, true
	case AbortLocal:
		l.gone, l.reset, l.blocked = true, true, false
	default:
	}
	return false
}

// takes ends that a client or a backend is blocked.
func (l *local) takes() {
	l.got = append(l.got, l.pending...)
	l.pending, l.blocked = nil, false
}

// exports gives the exporting stream of a link an event.
func (m *model) exports(p *path, e Event) {
	m.logf("exporting: %d %q %v", e.Kind, e.Data, e.Err)
	actions, err := p.exporting.Next(e, nil)
	if err != nil {
		m.fatalf("the importing side violates the protocol: %v", err)
	}
	for _, a := range actions {
		m.logf("  does %d %q", a.Do, a.Data)
		send := func(f frame) { p.back = append(p.back, f) }
		switch a.Do {
		case SendOpened:
			send(frame{kind: wire.TypeOpened})
		case SendData:
			send(frame{kind: wire.TypeData, data: bytes.Clone(a.Data)})
		case SendFin:
			send(frame{kind: wire.TypeFin})
		case SendReset:
			send(frame{kind: wire.TypeReset, err: ResetError{wire.CodeSocketReset}})
		case SendDone:
			if a.End {
				send(frame{kind: wire.TypeFin})
			}
			send(frame{kind: wire.TypeDone})
		case SendRefused:
			p.refused = true
			send(frame{kind: wire.TypeRefused, err: a.Err})
			if m.version == 1 {
				p.closing = true
			}
		case FinishLink:
			p.closing = true
		case CloseLink:
			m.cut(p)
		case WriteLocal:
			if len(p.backend.got)+len(p.backend.pending) == 0 {
				m.requests++
			}
			fallthrough
		default:
			if m.act(&p.backend, a) {
				m.exports(p, Event{Kind: LocalBlocked})
			}
		}
	}
}

// cut loses a link and all that is on it.
func (m *model) cut(p *path) {
	if p.gone {
		return
	}
	p.gone, p.there, p.back = true, nil, nil
	if p.exporting != nil {
		m.exports(p, Event{Kind: LinkLost, Err: io.EOF})
	}
	if m.link == p {
		m.link = nil
		m.imports(Event{Kind: LinkLost, Err: io.EOF})
	}
}

// step does one thing that can happen, and reports whether there was one.
func (m *model) step() bool {
	var can []func()
	add := func(possible bool, do func()) {
		if possible {
			can = append(can, do)
		}
	}
	_, reads := m.importing.ReadsLocal()
	c := &m.client
	add(reads && !c.gone && !c.ended && len(c.said) < 8, func() {
		b := []byte{byte('a' + len(c.said))}
		c.said = append(c.said, b...)
		m.imports(Event{Kind: LocalData, Data: b})
	})
	add(reads && !c.gone && !c.ended, func() { c.ended = true; m.imports(Event{Kind: LocalEnd}) })
	add(m.waits, m.answerWait)
	disturbs := m.faults && m.random.IntN(8) == 0
	for _, p := range m.links {
		m.addLink(p, disturbs, add)
	}
	if disturbs {
		add(!c.gone, func() { c.gone = true; m.imports(Event{Kind: LocalFailed}) })
		add(!m.importing.IsOver(), func() { m.imports(Event{Kind: Late}) })
		add(m.link != nil && !m.linkBlocked, func() { m.linkBlocked = true; m.imports(Event{Kind: LinkBlocked}) })
		add(m.importing.IsOpening(), func() { m.imports(Event{Kind: Denied, Err: &wire.Refusal{Code: wire.CodeTimeout}}) })
	}
	add(m.linkBlocked, func() {
		m.linkBlocked = false
		if m.link != nil {
			m.imports(Event{Kind: LinkDrained})
		}
	})
	add(c.blocked, func() { c.takes(); m.imports(Event{Kind: LocalDrained}) })
	if len(can) == 0 {
		return false
	}
	can[m.random.IntN(len(can))]()
	return true
}

func (m *model) answerWait() {
	m.waits = false
	if m.waitFor == "identity" {
		m.waitFor = ""
		m.imports(Event{Kind: Identified})
		return
	}
	m.attempts++
	if m.attempts > MaxAttempts {
		m.fatalf("attempt %d", m.attempts)
	}
	if m.faults && m.random.IntN(8) == 0 {
		m.imports(Event{Kind: Unlinked, Err: io.EOF})
		return
	}
	for _, p := range m.links {
		if p.idle && !p.gone && m.random.IntN(2) == 0 {
			m.link = p
		}
	}
	if m.link == nil {
		m.link = &path{}
		m.links = append(m.links, m.link)
	}
	m.link.idle, m.linkBlocked = false, false
	m.importing.Reusable(m.version > 1)
	m.imports(Event{Kind: Linked})
}

func (m *model) addLink(p *path, disturbs bool, add func(bool, func())) {
	if p.gone {
		return
	}
	x := p.exporting
	over := x == nil || x.IsOver()
	add(len(p.there) > 0 && (over || x.ReadsLink()), func() { m.deliver(p) })
	add(len(p.back) > 0 && (m.link != p || m.importing.ReadsLink()), func() { m.deliverBack(p) })
	add(len(p.there) == 0 && len(p.back) == 0 && p.closing, func() { m.cut(p) })
	if x == nil || x.IsOver() {
		return
	}
	b := &p.backend
	_, reads := x.ReadsLocal()
	add(p.connects, func() {
		p.connects = false
		if m.faults && m.random.IntN(4) == 0 {
			codes := []wire.Code{wire.CodeDenied, wire.CodeLimit, wire.CodeReconnect, wire.CodeUnidentified, wire.CodeNoEndpoint}
			m.exports(p, Event{Kind: Denied, Err: &wire.Refusal{Code: codes[m.random.IntN(len(codes))]}})
			return
		}
		m.exports(p, Event{Kind: Connected})
	})
	connected := !p.connects && !x.IsOpening()
	add(connected && reads && !b.ended && len(b.said) < 8, func() {
		data := []byte{byte('A' + len(b.said))}
		b.said = append(b.said, data...)
		m.exports(p, Event{Kind: LocalData, Data: data})
	})
	add(connected && reads && !b.ended, func() { b.ended = true; m.exports(p, Event{Kind: LocalEnd}) })
	add(b.blocked, func() { b.takes(); m.exports(p, Event{Kind: LocalDrained}) })
	if disturbs {
		add(connected && !b.gone, func() { b.gone = true; m.exports(p, Event{Kind: LocalFailed}) })
		add(true, func() { m.cut(p) })
		add(connected, func() { m.exports(p, Event{Kind: Denied, Err: errors.New("denied")}) })
	}
}

func (m *model) deliver(p *path) {
	f := p.there[0]
	p.there = p.there[1:]
	switch {
	case f.kind == wire.TypeOpen:
		if p.exporting != nil && !p.exporting.IsOver() {
			m.fatalf("a link gets a second stream")
		}
		s := New(Exporting, false)
		p.exporting, p.connects, p.refused, p.backend = &s, true, false, local{}
	case f.kind == wire.TypeReset:
		if p.exporting.IsOver() {
			m.cut(p)
			return
		}
		m.exports(p, Event{Kind: LinkReset, Err: f.err})
	case p.exporting.IsOver() && !p.refused && !p.closing:
		m.fatalf("%s after the end of the stream", f.kind)
	case f.kind == wire.TypeData:
		m.exports(p, Event{Kind: LinkData, Data: f.data})
	case f.kind == wire.TypeFin:
		m.exports(p, Event{Kind: LinkFin})
	}
}

func (m *model) deliverBack(p *path) {
	f := p.back[0]
	p.back = p.back[1:]
	if m.link != p {
		if !p.closing {
			m.fatalf("%s arrives without a stream", f.kind)
		}
		return
	}
	switch f.kind {
	case wire.TypeOpened:
		m.imports(Event{Kind: LinkOpened})
	case wire.TypeRefused, wire.TypeReset:
		m.imports(Event{Kind: LinkReset, Err: f.err})
	case wire.TypeDone:
		m.imports(Event{Kind: LinkDone})
	case wire.TypeData:
		m.imports(Event{Kind: LinkData, Data: f.data})
	case wire.TypeFin:
		m.imports(Event{Kind: LinkFin})
	default:
		m.fatalf("%s arrives", f.kind)
	}
}

// TestModel: whatever happens, and in whatever order, no request reaches two backends, no byte is lost, reordered or delivered to another
// stream, right gateways never violate the protocol, and every stream ends when nothing more happens to it.
//
// spec: G6, G7
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10_000) {
		m := &model{t: t, random: rand.New(rand.NewPCG(seed, 0)), version: 1 + int(seed%2)} //nolint:gosec // a test that can be repeated
		m.logf("seed %d", seed)
		m.importing = New(Importing, m.random.IntN(3) == 0)
		m.imports(Event{Kind: Begin})
		m.faults = m.random.IntN(4) > 0
		for range m.random.IntN(60) {
			m.step()
		}
		m.faults = false
		for n := 0; m.step(); n++ {
			if n > 1000 {
				m.fatalf("nothing ends")
			}
		}
		m.check()
	}
}

func (m *model) check() {
	m.t.Helper()
	if !m.importing.IsOver() || !m.finished || !m.client.gone {
		m.fatalf("the importing stream has not ended")
	}
	if m.requests > 1 {
		m.fatalf("%d backends got bytes of the client", m.requests)
	}
	for _, p := range m.links {
		if p.exporting == nil {
			continue
		}
		if !p.exporting.IsOver() || !p.connects && !p.refused && !p.backend.gone {
			m.fatalf("an exporting stream has not ended")
		}
		if !bytes.HasPrefix(m.client.said, p.backend.got) {
			m.fatalf("the backend got %q, and the client sent %q", p.backend.got, m.client.said)
		}
		if len(p.backend.got) > 0 && !bytes.HasPrefix(p.backend.said, m.client.got) {
			m.fatalf("the client got %q, and the backend sent %q", m.client.got, p.backend.said)
		}
		if m.result == nil && p.backend.closed && len(p.backend.got) > 0 && (!bytes.Equal(p.backend.got, m.client.said) || !bytes.Equal(m.client.got, p.backend.said)) {
			m.fatalf("a stream without an error has lost bytes: %q of %q, %q of %q", p.backend.got, m.client.said, m.client.got, p.backend.said)
		}
	}
}
