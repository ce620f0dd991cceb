// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// confirmation asks the user before a command affects other users or clusters.
type confirmation struct {
	yes     bool
	streams genericiooptions.IOStreams
}

func (c *confirmation) addFlags(flags *pflag.FlagSet) {
	flags.BoolVarP(&c.yes, "yes", "y", false, "do not ask")
}

// errNotConfirmed is returned if the user does not answer yes.
var errNotConfirmed = errors.New("nothing has been changed: the answer was not yes (--yes answers without a question)")

// ask prints what the command is about to do, and returns an error unless the user answers yes.
func (c confirmation) ask(ctx context.Context, format string, args ...any) error {
	if c.yes {
		return nil
	}
	fmt.Fprintf(c.streams.ErrOut, format+" Continue? [y/N] ", args...)
	answers := make(chan string, 1)
	go func() { // a read of a terminal does not end with ctx
		line, _ := bufio.NewReader(c.streams.In).ReadString('\n') // without a terminal, the line is empty
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
		fmt.Fprintln(c.streams.ErrOut)
		return errNotConfirmed
	}
}
