// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
)

// spec: C4
func TestEventReason(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ reason, want string }{
		"one":                  {"PortConflict", "PortConflict"},
		"several":              {"PortConflict,TypeConflict", "PortConflict,TypeConflict"},
		"128 bytes":            {"A," + strings.Repeat("b", 126), "A," + strings.Repeat("b", 126)},
		"129 bytes":            {"A," + strings.Repeat("b", 127), "A"},
		"a comma at 128":       {strings.Repeat("a", 128) + ",B", strings.Repeat("a", 128)},
		"a comma at 2 and 128": {"A," + strings.Repeat("b", 126) + ",C", "A," + strings.Repeat("b", 126)},
		"never empty":          {"," + strings.Repeat("b", 128), "," + strings.Repeat("b", 127)},
		"many":                 {strings.Repeat("abcdefghi,", 20) + "end", strings.TrimSuffix(strings.Repeat("abcdefghi,", 12), ",")},
		"one that is longer":   {strings.Repeat("a", 129), strings.Repeat("a", 128)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "the reason", test.want, conditions.EventReason(test.reason))
		})
	}
}

// spec: C4
func TestEventNote(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"short":             {"Conflicting type.", "Conflicting type."},
		"1,024 bytes":       {strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		"1,025 bytes":       {strings.Repeat("x", 1025), strings.Repeat("x", 1021) + "…"},
		"wide characters":   {strings.Repeat("é", 513), strings.Repeat("é", 510) + "…"},
		"wide, and it fits": {strings.Repeat("é", 512), strings.Repeat("é", 512)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "the note", test.want, conditions.EventNote(test.text))
		})
	}
}
