// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWalk: the functions of the data flow in ARCHITECTURE.md exist, and are fewer than a dozen.
func TestWalk(t *testing.T) {
	t.Parallel()
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, walk, _ := strings.Cut(string(text), "## Data flow\n")
	walk, _, _ = strings.Cut(walk, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| [AB] \\| `([a-z]+)\\.(?:([A-Za-z]+)\\.)?([A-Za-z]+)` \\|").FindAllStringSubmatch(walk, -1)
	if len(rows) < 8 || len(rows) >= 12 {
		t.Errorf("the data flow names %d functions", len(rows))
	}
	for _, row := range rows {
		pkg, receiver, function := row[1], row[2], row[3]
		declaration := `(?m)^func ` + function + `[\[(]`
		if receiver != "" {
			declaration = `(?m)^func \(\w+ \*?` + receiver + `\) ` + function + `\(`
		}
		if !declares(t, pkg, root, regexp.MustCompile(declaration)) {
			t.Errorf("there is no %s", strings.Trim(row[0], "| AB"))
		}
	}
}

// declares reports whether a package of this name has a line that matches.
func declares(t *testing.T, pkg, root string, line *regexp.Regexp) bool {
	t.Helper()
	for _, folder := range []string{"pkg", "controllers"} {
		files, err := filepath.Glob(filepath.Join(root, folder, pkg, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if line.Match(source) {
				return true
			}
		}
	}
	return false
}
