// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"

	"golang.org/x/term"
)

// TimeFormat is the format of times. They are in UTC, because they are of several clusters.
const TimeFormat = "2006-01-02 15:04:05Z"

// Table is printed in columns, as kubectl prints tables.
type Table struct {
	Header []string
	rows   [][]string
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Write prints the table, indented by two spaces. Empty cells become "-". It replaces the control characters in data of clusters.
func (t *Table) Write(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	for _, row := range append([][]string{t.Header}, t.rows...) {
		if len(row) == 0 {
			continue
		}
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = cmp.Or(Plain(cell), "-")
		}
		fmt.Fprintln(w, "  "+strings.Join(cells, "\t"))
	}
	_ = w.Flush() // a command cannot report that its output cannot be written
}

// Plain replaces the control characters of a terminal in text.
func Plain(text string) string {
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

// Colour is the escape sequence of a colour on a terminal.
type Colour string

// The colours of problems, warnings and good news.
const (
	Red    Colour = "\x1b[31m"
	Yellow Colour = "\x1b[33m"
	Green  Colour = "\x1b[32m"
)

// IsTerminal reports whether a terminal shows what is written.
func IsTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Paint returns a function that colours text. It returns the text unchanged if out is not a terminal or NO_COLOR is set
// (https://no-color.org).
func Paint(out io.Writer) func(Colour, string) string {
	if os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && IsTerminal(out) {
		return func(c Colour, text string) string { return string(c) + text + "\x1b[0m" }
	}
	return func(_ Colour, text string) string { return text }
}
