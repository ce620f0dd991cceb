// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Confirmation asks the user before a command affects other users or clusters.
type Confirmation struct {
	yes     bool
	Streams genericiooptions.IOStreams
}

// AddFlags adds the flag that answers yes.
func (c *Confirmation) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVarP(&c.yes, "yes", "y", false, "do not ask")
}

// errNotConfirmed is returned if the user does not answer yes.
var errNotConfirmed = errors.New("nothing has been changed: the answer was not yes (--yes answers without a question)")

// Ask prints what the command is about to do, and returns an error unless the user answers yes.
func (c Confirmation) Ask(ctx context.Context, format string, args ...any) error {
	if c.yes {
		return nil
	}
	fmt.Fprintf(c.Streams.ErrOut, format+" Continue? [y/N] ", args...)
	answers := make(chan string, 1)
	go func() { // a read of a terminal does not end with ctx
		line, _ := bufio.NewReader(c.Streams.In).ReadString('\n') // without a terminal, the line is empty
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
		fmt.Fprintln(c.Streams.ErrOut)
		return errNotConfirmed
	}
}
