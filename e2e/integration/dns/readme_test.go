// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const readme = "../../../coredns-plugin/clusterset/README.md"

var update = flag.Bool("update", false, "write the table of differences into the plugin's README")

// TestReadmeDifferences: the README tells the differences that testDifferences finds, each of them and no others.
func TestReadmeDifferences(t *testing.T) {
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	const title = "| Names | Types | Here | CoreDNS' own | Why |\n| --- | --- | --- | --- | --- |\n"
	before, rest, found := strings.Cut(string(text), title)
	if !found {
		t.Fatalf("no table in the README with the head\n%s", title)
	}
	got, after, _ := strings.Cut(rest, "\n\n")
	var want strings.Builder
	for _, e := range entries {
		want.WriteString(e.row() + "\n")
	}
	if *update {
		if err := os.WriteFile(readme, []byte(before+title+want.String()+"\n"+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want.String(), got+"\n"); diff != "" {
		t.Errorf("run this test with -update (-want +got):\n%s", diff)
	}
}

// row returns the entry as a row of a table in Markdown.
func (e entry) row() string {
	types := strings.ReplaceAll(e.types, " ", ", ")
	switch e.types {
	case everyType:
		types = "all but SOA"
	case everyTypeBut("TXT"):
		types = "all but SOA and TXT"
	}
	tell := func(outcome string) string {
		outcome = strings.ReplaceAll(outcome, "\t", " ")
		if e.in == "answer" {
			return "`" + outcome + "`"
		}
		return outcome
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", e.names, types, tell(e.ours), tell(e.theirs), e.reason)
}
