// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"io"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

// A client's bytes are kept before its stream is open: few, then as many as MaxEarly if there is memory, and none afterwards.
//
// spec: G7, G12
func TestEarly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		memory bool
		want   []int // how many bytes are read at most each time
	}{
		"with memory":    {true, []int{freeEarly, MaxEarly - freeEarly, 0}},
		"without memory": {false, []int{freeEarly, 0}},
	} {
		s := New(Importing, false)
		_, err := s.Next(Event{Kind: Begin}, nil)
		check.Must(t, err)
		for _, want := range test.want {
			n, wanted := s.ReadsLocal()
			check.Equal(t, name+": bytes", want, n)
			check.Equal(t, name+": the client is read", want > 0, wanted)
			actions, err := s.Next(Event{Kind: LocalData, Data: make([]byte, n)}, nil)
			check.Must(t, err)
			for _, a := range actions {
				check.Equal(t, name+": action", ReserveEarly, a.Do)
				if test.memory {
					s.KeepAll()
				}
			}
		}
		for _, kind := range []Kind{Linked, LinkOpened} {
			_, err = s.Next(Event{Kind: kind}, nil)
			check.Must(t, err)
		}
		n, wanted := s.ReadsLocal()
		check.Equal(t, name+": bytes of an open stream", true, wanted && n > MaxEarly)
		check.Equal(t, name+": bytes that are kept", 0, cap(s.early))
	}
}

// The pauses between the attempts of a stream, by why one has ended.
//
// spec: G7, G12
func TestPauses(t *testing.T) {
	t.Parallel()
	none := [MaxAttempts]time.Duration{}
	refused := func(code wire.Code) Event { return Event{Kind: LinkReset, Err: &wire.Refusal{Code: code}} }
	for name, test := range map[string]struct {
		end  Event
		want [MaxAttempts]time.Duration
	}{
		"a connection that was lost":    {Event{Kind: LinkLost, Err: io.EOF}, none},
		"a connection that was too old": {refused(wire.CodeReconnect), none},
		"no endpoint":                   {refused(wire.CodeNoEndpoint), pauses},
		"a gateway that shuts down":     {refused(wire.CodeShutdown), [MaxAttempts]time.Duration{2: pauses[2], pauses[3]}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, got := New(Importing, false), [MaxAttempts]time.Duration{}
			actions, err := s.Next(Event{Kind: Begin}, nil)
			for attempt := range MaxAttempts {
				check.Must(t, err)
				got[attempt] = actions[len(actions)-1].After
				check.Equal(t, "action", Connect, actions[len(actions)-1].Do)
				_, err = s.Next(Event{Kind: Linked}, nil)
				check.Must(t, err)
				actions, err = s.Next(test.end, nil)
			}
			check.Must(t, err)
			check.Equal(t, "pauses", test.want, got)
			check.Equal(t, "the stream is over", true, s.IsOver())
		})
	}
}
