// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"

	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// table is one of columns as kubectl prints them.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table, indented by two spaces. Empty cells become "-"; what comes from clusters cannot steer the terminal.
func (t *table) write(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	for _, row := range append([][]string{t.header}, t.rows...) {
		if len(row) == 0 {
			continue
		}
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = cmp.Or(plain(cell), "-")
		}
		fmt.Fprintln(w, "  "+strings.Join(cells, "\t"))
	}
	_ = w.Flush() // output of a command: where it cannot be written there is nobody to tell
}

// plain returns text in which nothing is left that a terminal would obey.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// format is how a command prints what it has found.
type format string

// How a command prints what it has found.
const (
	formatTable format = ""
	formatWide  format = "wide"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

// check returns an error where a command does not know a format.
func (f format) check(known ...format) error {
	var words []string
	for _, k := range known {
		if f == k {
			return nil
		}
		if k != formatTable {
			words = append(words, string(k))
		}
	}
	return usageError{fmt.Errorf("-o %s: must be one of %s", f, strings.Join(words, ", "))}
}

// isData reports whether a format is for programs.
func (f format) isData() bool { return f == formatJSON || f == formatYAML }

// printData writes a value for programs.
func printData(out io.Writer, f format, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if f == formatYAML {
		if content, err = yaml.JSONToYAML(content); err != nil {
			return err
		}
		fmt.Fprint(out, "---\n", string(content))
		return nil
	}
	fmt.Fprintln(out, string(content))
	return nil
}

// colour is a sequence that gives what follows a colour on a terminal.
type colour string

// The colours there are.
const (
	red    colour = "\x1b[31m"
	yellow colour = "\x1b[33m"
	green  colour = "\x1b[32m"
)

// paint returns what colours text for a writer: nothing, unless that is a terminal and NO_COLOR is not set
// (https://no-color.org).
func paint(out io.Writer) func(colour, string) string {
	if file, ok := out.(*os.File); ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd())) {
		return func(c colour, text string) string { return string(c) + text + "\x1b[0m" }
	}
	return func(_ colour, text string) string { return text }
}
