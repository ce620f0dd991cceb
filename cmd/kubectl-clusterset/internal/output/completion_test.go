// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/spf13/cobra"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// TestCompletionOfSlowSources: a completion has what the sources answer within CompletionTimeout, and says why it lacks the rest. It also
// returns if a source does not end with its context.
func TestCompletionOfSlowSources(t *testing.T) {
	t.Parallel()
	type source = func(context.Context) ([]string, error)
	answers := func(values ...string) source {
		return func(context.Context) ([]string, error) { return values, nil }
	}
	fails := func(context.Context) ([]string, error) {
		return []string{"web-0"}, errors.New("the hub could not be read")
	}
	ends := func(ctx context.Context) ([]string, error) {
		<-ctx.Done()
		return nil, errSlowCompletion
	}
	const slow, failed = "not complete: a cluster has not answered within 3s", "not complete: the hub could not be read"
	for name, test := range map[string]struct {
		sources []source
		endless int
		want    []string
	}{
		"all answer":              {[]source{answers("web-2", "db"), answers("web-1", "web-2")}, 0, []string{"web-1", "web-2"}},
		"one fails":               {[]source{answers("web-1"), fails}, 0, []string{"web-0", "web-1", failed}},
		"one is slow":             {[]source{answers("web-1"), ends}, 0, []string{"web-1", slow}},
		"all are slow":            {[]source{ends, ends}, 1, []string{slow}},
		"one does not end at all": {[]source{answers("web-1"), fails}, 1, []string{"web-0", "web-1", slow, failed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan struct{})
				for range test.endless {
					test.sources = append(test.sources, func(context.Context) ([]string, error) {
						<-ended
						return nil, nil
					})
				}
				cmd := &cobra.Command{}
				cmd.SetContext(t.Context())
				got, directive := CompleteWith(test.sources...)(cmd, nil, "web")
				close(ended)
				var want []cobra.Completion
				for _, text := range test.want {
					if strings.HasPrefix(text, "not complete") {
						want = cobra.AppendActiveHelp(want, text)
					} else {
						want = append(want, text)
					}
				}
				check.Equal(t, "completions", want, got)
				check.Equal(t, "directive", cobra.ShellCompDirectiveNoFileComp, directive)
			})
		})
	}
}
