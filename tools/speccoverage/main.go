// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command speccoverage shows which tests cover which line of the specification (docs/spec.md).
//
// A test names the lines it covers in a comment, "// spec: E1, R2", anywhere in or above the test function. A line that no test
// names fails the run, and so does a name that docs/spec.md does not have.
package main

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// errCoverage says that the report itself holds the reason for the failure.
var errCoverage = errors.New("the tests and docs/spec.md do not match")

func main() {
	if err := run(".", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "speccoverage:", err)
		os.Exit(1)
	}
}

func run(root string, out io.Writer) error {
	text, err := os.ReadFile(filepath.Join(root, "docs", "spec.md"))
	if err != nil {
		return err
	}
	ids, err := parseSpec(string(text))
	if err != nil {
		return fmt.Errorf("docs/spec.md: %w", err)
	}
	tests, err := scan(root)
	if err != nil {
		return err
	}
	failed := false
	for _, id := range ids {
		where := tests[id]
		if len(where) == 0 {
			where, failed = []string{"NO TEST"}, true
		}
		fmt.Fprintf(out, "%-4s%s\n", id, strings.Join(where, "\n    "))
		delete(tests, id)
	}
	for id, where := range tests {
		failed = true
		fmt.Fprintf(out, "docs/spec.md has no %s: %s\n", id, strings.Join(where, ", "))
	}
	if failed {
		return errCoverage
	}
	return nil
}

// specRow matches a row of the tables: | E1 | M | text |, with the level M, S or O.
var specRow = regexp.MustCompile(`(?m)^\|\s*([A-Z]\d+)\s*\|\s*([^|]*?)\s*\|`)

// parseSpec returns the IDs in the order of the document. A duplicate ID, an unknown level, or no ID at all is an error.
func parseSpec(text string) ([]string, error) {
	var ids []string
	for _, m := range specRow.FindAllStringSubmatch(text, -1) {
		id, level := m[1], m[2]
		if !slices.Contains([]string{"M", "S", "O"}, level) {
			return nil, fmt.Errorf("%s: level %q is none of M, S, O", id, level)
		}
		if slices.Contains(ids, id) {
			return nil, fmt.Errorf("%s is defined twice", id)
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil, errors.New("no line of the form | E1 | M | text |")
	}
	return ids, nil
}

// scan returns, for each ID, the places ("file:line") in test files and stories below root that name it.
func scan(root string) (map[string][]string, error) {
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		built := rel == "bin" || rel == "out" || (rel != "." && strings.HasPrefix(entry.Name(), "."))
		switch {
		case entry.IsDir() && built:
			return filepath.SkipDir
		case strings.HasSuffix(rel, "_test.go"):
			return scanTest(path, rel, found)
		}
		return nil
	})
	return found, err
}

func scanTest(path, rel string, found map[string][]string) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			note(found, comment.Text, fmt.Sprintf("%s:%d", rel, fset.Position(comment.Pos()).Line))
		}
	}
	return nil
}

var mention = regexp.MustCompile(`^(?://|#)\s*spec:(.*)`)

func note(found map[string][]string, comment, where string) {
	m := mention.FindStringSubmatch(comment)
	if m == nil {
		return
	}
	for _, id := range strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		found[id] = append(found[id], where)
	}
}
