// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package walk_test

import (
	"testing"

	"github.com/tombolo-mcs/tombolo/e2e/framework/walk"
)

func TestMatches(t *testing.T) {
	for name, test := range map[string]struct {
		shown, text string
		want        bool
	}{
		"the same":             {"a b", "a b", true},
		"other white space":    {"a\n b", "a   b\n", true},
		"an ellipsis":          {"ip … port 80", "ip 10.0.0.1 port 80", true},
		"something else":       {"a b", "a c", false},
		"something more":       {"a", "a b", false},
		"not a pattern":        {"a.c", "abc", false},
		"a wrong end":          {"ip … port 80", "ip 10.0.0.1 port 81", false},
		"an ellipsis, no more": {"…", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := walk.Matches(test.shown, test.text); got != test.want {
				t.Errorf("Matches(%q, %q) = %v", test.shown, test.text, got)
			}
		})
	}
}
