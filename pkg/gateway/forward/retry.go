// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"time"

	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
)

// lost says that the connection of the stream has ended, and why. The stream is tried on another one if no client byte can have
// reached a backend (G7).
func (o *outgoing) lost(address string, cause error) {
	o.mu.Lock()
	var refusal *wire.Refusal
	again := !o.sent || o.silent // what the client has sent since it was closed was not sent on it
	if errors.As(cause, &refusal) {
		again = refusal.Code.Retryable()
	}
	again = again && o.state == opening && o.attempts < maxAttempts
	if again {
		o.conn, o.failed = nil, address
	}
	o.mu.Unlock()
	if again {
		o.attempt(cause)
	} else {
		o.fail(cause)
	}
}

// errSilent says that a gateway has not answered OPEN in time, or that something on the path has dropped the connection while it was idle.
var errSilent = errors.New("the other gateway has not answered in time")

// replace closes the connection of a stream whose OPEN was not answered in half of the time that the stream has, for a new one, if no
// client byte was sent on it (G7).
func (o *outgoing) replace() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state == opening && !o.sent && o.conn != nil && time.Since(o.asked) >= o.answerTimeout {
		o.silent = true
		o.conn.Close() // its reader calls lost
	}
}

// choice returns which connections can carry the stream: only a new one after one that did not answer, because whatever has dropped that
// has dropped the other idle ones.
func (o *outgoing) choice() choice {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.silent {
		return newLink
	}
	return anyLink
}
