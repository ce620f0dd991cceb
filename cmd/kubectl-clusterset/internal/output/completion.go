// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// CompletionTimeout limits the requests for one completion: a user waits for it at the prompt.
const CompletionTimeout = 3 * time.Second

// Completion completes an argument or a flag.
type Completion = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective)

// proposals are values for a completion, and why some could not be read.
type proposals struct {
	values  []string
	failure error
}

// CompleteWith returns a completion of values that are read when the user asks for them, from several sources in parallel.
func CompleteWith(sources ...func(context.Context) ([]string, error)) Completion {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
		defer cancel()
		answers := make(chan proposals, len(sources))
		for _, read := range sources {
			go func() {
				values, err := read(ctx)
				answers <- proposals{values, err}
			}()
		}
		var result []cobra.Completion
		var failures []string
		for range sources {
			answer := proposals{failure: errSlowCompletion}
			select {
			case answer = <-answers:
			case <-ctx.Done(): // discovery does not end with ctx
			}
			for _, value := range answer.values {
				if strings.HasPrefix(value, prefix) {
					result = append(result, value)
				}
			}
			if answer.failure != nil {
				failures = append(failures, answer.failure.Error())
			}
		}
		slices.Sort(result)
		result = slices.Compact(result)
		slices.Sort(failures)
		for _, text := range slices.Compact(failures) {
			result = cobra.AppendActiveHelp(result, "not complete: "+Plain(text))
		}
		return result, cobra.ShellCompDirectiveNoFileComp
	}
}

// errSlowCompletion is the failure of a source that does not answer in time.
var errSlowCompletion = fmt.Errorf("a cluster has not answered within %s", CompletionTimeout)

// CompleteAt returns a completion of the argument at a position, and none elsewhere.
func CompleteAt(position int, complete Completion) Completion {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) != position {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, prefix)
	}
}

// CompleteFlag completes a flag of a command.
func CompleteFlag(cmd *cobra.Command, flag string, complete Completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // a flag that the command does not define
	}
}

// completeValues returns a completion of fixed values.
func completeValues(values ...string) Completion {
	return CompleteWith(func(context.Context) ([]string, error) { return values, nil })
}
