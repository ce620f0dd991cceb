// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestConfirmation: only yes is yes, and without a terminal there is no answer.
func TestConfirmation(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]error{
		"y\n": nil, "yes\n": nil, " YES \n": nil, "y": nil,
		"": errNotConfirmed, "\n": errNotConfirmed, "n\n": errNotConfirmed, "yes please\n": errNotConfirmed, "no\nyes\n": errNotConfirmed,
	} {
		var out bytes.Buffer
		c := Confirmation{Streams: genericiooptions.IOStreams{In: strings.NewReader(answer), ErrOut: &out}}
		if err := c.Ask(t.Context(), "%d pods are started.", 2); !errors.Is(err, want) || !strings.HasPrefix(out.String(), "2 pods are started. Continue? [y/N] ") {
			t.Errorf("answer %q: %v, after the question %q", answer, err, &out)
		}
		c.yes, c.Streams.ErrOut = true, nil // nothing is printed
		if err := c.Ask(t.Context(), "?"); err != nil {
			t.Errorf("with --yes: %v", err)
		}
	}
}

// TestConfirmationInterrupted: a question ends with the command.
func TestConfirmationInterrupted(t *testing.T) {
	t.Parallel()
	in, writer := io.Pipe() // nothing is ever written
	defer writer.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := Confirmation{Streams: genericiooptions.IOStreams{In: in, ErrOut: io.Discard}}
	if err := c.Ask(ctx, "?"); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
