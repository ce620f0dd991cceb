// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
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
		c := confirmation{streams: genericiooptions.IOStreams{In: strings.NewReader(answer), ErrOut: &out}}
		if err := c.ask(t.Context(), "%d pods are started.", 2); !errors.Is(err, want) || !strings.HasPrefix(out.String(), "2 pods are started. Continue? [y/N] ") {
			t.Errorf("answer %q: %v, after the question %q", answer, err, &out)
		}
		c.yes, c.streams.ErrOut = true, nil // nothing is printed
		if err := c.ask(t.Context(), "?"); err != nil {
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
	c := confirmation{streams: genericiooptions.IOStreams{In: in, ErrOut: io.Discard}}
	if err := c.ask(ctx, "?"); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestSVGOnTerminal: graph writes no image to a terminal, before it contacts a cluster.
func TestSVGOnTerminal(t *testing.T) {
	t.Parallel()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal can be opened here: %v", err)
	}
	defer terminal.Close()
	var errs bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: terminal, ErrOut: &errs}
	if code := Run(t.Context(), Build{}, []string{"graph"}, streams); code != ExitUsage || !strings.Contains(errs.String(), errSVGOnTerminal.Error()) {
		t.Errorf("exit code %d: %s", code, &errs)
	}
}
