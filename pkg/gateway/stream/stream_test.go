// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"io"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/check"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
)

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
