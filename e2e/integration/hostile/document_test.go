// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"os"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// heads are those of the table of acts.
var heads = []string{"Act", "Refused by", "Shown in", "Without policies, by", "Shown in", "Nor schemas, by"}

// rows returns what becomes of each act on each hub.
func rows() [][]string {
	var result [][]string
	for _, a := range append(everything(), lasting()...) {
		last := ""
		if a.refuser(withoutPolicies).by == schemas {
			last = a.outcome(withoutSchemas)
		}
		result = append(result, []string{
			a.name, a.outcome(asReleased), a.shown(asReleased), a.outcome(withoutPolicies), a.shown(withoutPolicies), last,
		})
	}
	return result
}

// closing returns the table for those who run the test.
func closing(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{heads}, rows()...) {
		_, err := table.Write([]byte(strings.Join(row, "\t") + "\n"))
		lab.Must(t, err)
	}
	lab.Must(t, table.Flush())
	return text.String()
}

// TestDocument: docs/security.md has all acts, and what becomes of them.
func TestDocument(t *testing.T) {
	t.Parallel()
	const begin, end = "| Act |", "\n\n"
	content, err := os.ReadFile("../../../docs/security.md")
	lab.Must(t, err)
	_, after, found := strings.Cut(string(content), begin)
	if !found {
		t.Error("docs/security.md has no table of acts")
	}
	got, _, _ := strings.Cut(begin+after, end)
	var want []string
	for _, row := range append([][]string{heads, strings.Split(strings.Repeat("---,", len(heads)-1)+"---", ",")}, rows()...) {
		want = append(want, strings.TrimRight("| "+strings.Join(row, " | "), " ")+" |")
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), got); diff != "" {
		t.Errorf("docs/security.md (-want +got):\n%s\nThe table as it is to be:\n%s", diff, strings.Join(want, "\n"))
	}
}
