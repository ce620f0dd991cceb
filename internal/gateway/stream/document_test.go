// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

// row is a row of a table of docs/gateway-protocol.md. It applies in each of its states, and to each of its events, if its conditions are true.
type row struct {
	states, events, conditions []string
	actions, next              string
	used                       bool
}

func rowsOf(t *testing.T, title string) (rows []*row) {
	t.Helper()
	document, err := os.ReadFile("../../../docs/gateway-protocol.md")
	check.Must(t, err)
	_, after, _ := strings.Cut(string(document), title+"\n\n")
	table, _, _ := strings.Cut(after, "\n\n")
	for _, line := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, &row{
			states: strings.Split(cells[1], ", "), events: strings.Split(cells[2], "; "), conditions: strings.Split(cells[3], ", "), actions: cells[4], next: cells[5],
		})
	}
	return rows
}

// events returns the events by their names in the document.
func events() map[string][]Event {
	result := map[string][]Event{
		"begins": {{Kind: Begin}}, "has a connection": {{Kind: Linked}}, "gets no connection": {{Kind: Unlinked, Err: io.EOF}},
		"has identified the client": {{Kind: Identified}}, "has no answer for 10 s": {{Kind: Late}}, "has connected to a backend": {{Kind: Connected}},
		"reads bytes": {{Kind: LocalData, Data: []byte("x")}}, "reads the end": {{Kind: LocalEnd}}, "the socket fails": {{Kind: LocalFailed}},
		"receives OPENED": {{Kind: LinkOpened}}, "receives DATA": {{Kind: LinkData, Data: []byte("x")}}, "receives FIN": {{Kind: LinkFin}},
		"receives DONE": {{Kind: LinkDone}}, "receives RESET": {{Kind: LinkReset, Err: ResetError{}}}, "loses the connection": {{Kind: LinkLost, Err: io.EOF}},
		"must end the stream": {{Kind: Denied, Err: errors.New("denied")}}, "refuses the stream": {{Kind: Denied, Err: &wire.Refusal{}}},
		"": {{Kind: LocalBlocked}, {Kind: LocalDrained}, {Kind: LinkBlocked}, {Kind: LinkDrained}}, // they change what is read
	}
	for code := range wire.CodeUnidentified + 2 { // the first and the last one are not known
		class := "another code"
		switch {
		case code == wire.CodeReconnect, code == wire.CodeShutdown, code == wire.CodeMalformedOpen:
			class = code.String()
		case code == wire.CodeUnidentified, code == wire.CodeDenied:
			class = "Unidentified or Denied"
		case code.Retryable():
			class = "another code that is retried"
		}
		name := "receives REFUSED (" + class + ")"
		result[name] = append(result[name], Event{Kind: LinkReset, Err: &wire.Refusal{Code: code}})
	}
	for kind := Denied + 1; kind < 2*Denied; kind++ {
		result["an event that the document does not know"] = append(result["an event that the document does not know"], Event{Kind: kind})
	}
	return result
}

// happens reports whether a stream can have an event.
func happens(s *Stream, e Event) bool {
	_, readsLocal := s.ReadsLocal()
	waits := s.side == Importing && s.phase == opening && !s.linked
	switch e.Kind {
	case Begin, Linked, Unlinked, Identified:
		return waits
	case Connected:
		return s.side == Exporting && s.phase == opening
	case LocalData, LocalEnd:
		return readsLocal
	case LocalFailed, LocalBlocked, LocalDrained:
		return s.side == Importing || s.phase == open
	case Denied: // an exporting stream is refused only before it is open
		return !errors.As(e.Err, new(*wire.Refusal)) || s.side == Exporting && s.phase == opening
	case LinkOpened, LinkData, LinkFin, LinkReset, LinkDone:
		return !waits && s.ReadsLink()
	case LinkLost, Late:
		return !waits
	default:
		return true
	}
}

func stateOf(s *Stream) string {
	if s.side == Importing && s.phase == opening && !s.linked {
		return "waiting"
	}
	return [...]string{"opening", "open", "ended"}[s.phase]
}

// conditionsOf returns which conditions of the document are true.
func conditionsOf(s *Stream) map[string]bool {
	return map[string]bool{
		"": true, "OPEN had field 10": s.unidentified, "OPEN had no field 10": !s.unidentified, "DATA was sent": s.carried, "no DATA was sent": !s.carried,
		"FIN was sent": s.localEnd, "FIN was not sent": !s.localEnd, "FIN was received": s.linkEnd, "FIN was not received": !s.linkEnd,
		"the connection takes bytes": !s.linkBlocked, "the connection takes no more bytes": s.linkBlocked,
	}
}

// word returns the words of the document for an action; none for what only the gateway itself sees.
func word(s *Stream, e Event, a Action) string {
	var refusal *wire.Refusal
	answered := s.phase == opening && errors.As(e.Err, &refusal) && !refusal.Code.EndsConnection()
	switch isFree := a.Do == FreeLink; {
	case answered && (isFree || a.Do == CloseLink) && isFree == (s.reuse && !s.carried && !s.localEnd):
		return "release the connection"
	case a.Do == Connect && a.Fresh:
		return "get a new connection"
	case a.Do == SendOpen && (!bytes.Equal(a.Data, s.early) || a.End != s.localEnd):
		return "send OPEN, but not what was read"
	case a.Do == AbortLocal && s.side == Exporting && s.phase == opening: // there is no socket yet
		return ""
	}
	if a.Do == SendDone && a.End {
		return "send FIN and DONE"
	}
	words, known := map[Do]string{
		Open: "", Finish: "", Connect: "get a connection", Identify: "identify the client", SendOpen: "send OPEN, then as DATA and FIN what was read", SendOpened: "send OPENED",
		SendData: "send DATA", SendFin: "send FIN", SendReset: "send RESET", SendRefused: "send REFUSED", SendDone: "send DONE", WriteLocal: "write the bytes",
		ShutLocal: "write the end", CloseLocal: "close the socket", AbortLocal: "reset the socket", FreeLink: "keep the connection",
		FinishLink: "close the connection after it", CloseLink: "close the connection",
	}[a.Do]
	if !known {
		return fmt.Sprint("action ", a.Do)
	}
	return words
}

const violation = "close the connection, reset the socket -> ended"

// want returns what a document says of an event: the actions and the next state, and false if it says nothing.
func want(t *testing.T, rows []*row, name string, s *Stream, e Event) (string, bool) {
	t.Helper()
	var found []*row
	state, conditions := stateOf(s), conditionsOf(s)
	for _, r := range rows {
		if slices.Contains(r.events, name) && slices.Contains(r.states, state) && !slices.ContainsFunc(r.conditions, func(c string) bool { return !conditions[c] }) {
			r.used = true
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		if len(found) > 1 {
			t.Errorf("%s, %s: several rows", state, name)
		}
		if !strings.HasPrefix(name, "receives") {
			return "no change", false
		}
		return violation, true
	}
	r := *found[0]
	if r.next == "the same" {
		r.next = state
	}
	if s.attempts == MaxAttempts || s.attempts == MaxAttempts-1 && e.Kind == Unlinked { // it was the last one
		for _, again := range []string{"get a connection", "get a new connection", "identify the client"} {
			if before, is := strings.CutSuffix(r.actions, again); is {
				r.actions, r.next = before+"reset the socket", "ended"
			}
		}
	}
	return r.actions + " -> " + r.next, true
}

// compare gives a stream an event, and compares what happens with the document. It returns the state after the event.
func compare(t *testing.T, rows []*row, name string, before Stream, e Event) Stream {
	t.Helper()
	after := before
	after.early = slices.Clone(before.early)
	actions, err := after.Next(e, nil)
	if err != nil {
		after.phase = ended
	}
	if name == "" {
		return after
	}
	var words []string
	for _, a := range actions {
		if w := word(&before, e, a); w != "" {
			words = append(words, w)
		}
	}
	got := strings.Join(words, ", ") + " -> " + stateOf(&after)
	if err != nil {
		got = violation
	}
	want, hasRow := want(t, rows, name, &before, e)
	if hasRow && got != want || !hasRow && (len(actions) > 0 || !reflect.DeepEqual(before, after)) {
		t.Errorf("%s, %s: the code does %q; the document says %q; %+v", stateOf(&before), name, got, want, before)
	}
	return after
}

// The tables of docs/gateway-protocol.md say what Next does, in each state that a stream can reach. What has no row changes nothing, but a
// frame is a violation.
//
// spec: G6, G7
func TestDocument(t *testing.T) {
	t.Parallel()
	for side, title := range []string{Importing: "The dialer's states:", Exporting: "The exporter's states:"} {
		rows, seen, all := rowsOf(t, title), map[string]bool{}, events()
		var todo []Stream
		for n := range 4 {
			s := New(Side(side), n%2 == 0) //nolint:gosec // 0 or 1
			s.Reusable(n < 2)
			todo = append(todo, s)
		}
		for ; len(todo) > 0; todo = todo[1:] {
			s := todo[0]
			s.early = s.early[:min(1, len(s.early))]
			key := fmt.Sprint(s)
			if seen[key] || s.IsOver() {
				continue
			}
			seen[key] = true
			for name, kinds := range all {
				for _, e := range kinds {
					if happens(&s, e) {
						todo = append(todo, compare(t, rows, name, s, e))
					}
				}
			}
		}
		for _, r := range rows {
			if !r.used {
				t.Errorf("no stream does this: %+v", *r)
			}
		}
		t.Logf("%s %d rows, %d states", title, len(rows), len(seen))
	}
}
