// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command speccoverage shows which tests cover which line of the specification (docs/spec.md).
//
// A test names the lines it covers in a comment, "// spec: E1, R2", anywhere in or above the test function; a txtar
// story in a line of its own, "# spec: E1". A name that docs/spec.md does not have fails the run; a line without a
// test is a gap, which fails the run only in the sections given by -require.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// errCoverage says that the report itself holds the reason for the failure.
var errCoverage = errors.New("the specification is not covered as required")

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "speccoverage:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("speccoverage", flag.ContinueOnError)
	root := flags.String("root", ".", "the repository's root")
	require := flags.String("require", "", "sections in which a gap is a failure, as in E,C,R")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(*root, "docs", "spec.md"))
	if err != nil {
		return err
	}
	lines, err := parseSpec(string(text))
	if err != nil {
		return fmt.Errorf("docs/spec.md: %w", err)
	}
	sections, err := parseSections(*require, lines)
	if err != nil {
		return err
	}
	mentions, err := scan(*root)
	if err != nil {
		return err
	}
	return report(out, compare(lines, mentions), sections)
}

// parseSections returns the section letters of a list such as "E,C,R". A letter that no line has is an error.
func parseSections(list string, lines []specLine) ([]string, error) {
	var sections []string
	for s := range strings.SplitSeq(list, ",") {
		s = strings.TrimSpace(s)
		if s == "" {
			continue
		}
		if !slices.ContainsFunc(lines, func(l specLine) bool { return l.section() == s }) {
			return nil, fmt.Errorf("-require: docs/spec.md has no section %q", s)
		}
		sections = append(sections, s)
	}
	return sections, nil
}

// report prints the table, the gaps and the unknown names, and returns errCoverage if one of them is a failure.
func report(out io.Writer, c coverage, required []string) error {
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tLEVEL\tTESTS")
	for _, row := range c.rows {
		tests := row.tests
		if len(tests) == 0 {
			tests = []string{"-"}
		}
		for i, test := range tests {
			if i == 0 {
				fmt.Fprintf(table, "%s\t%s\t%s\n", row.line.id, row.line.level, test)
			} else {
				fmt.Fprintf(table, "\t\t%s\n", test)
			}
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}

	gaps := c.gaps()
	fmt.Fprintf(out, "\n%d of %d lines are named by a test\n", len(c.rows)-len(gaps), len(c.rows))
	failed := false
	for _, gap := range gaps {
		note := ""
		if slices.Contains(required, gap.section()) {
			note, failed = " (required)", true
		}
		fmt.Fprintf(out, "gap %s %s%s: %s\n", gap.id, gap.level, note, gap.text)
	}
	for _, m := range c.unknown {
		fmt.Fprintf(out, "%s:%d: %s names %s, which docs/spec.md does not have\n", m.file, m.line, m.test, m.id)
		failed = true
	}
	if failed {
		return errCoverage
	}
	return nil
}
