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

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// table is printed in columns, as kubectl prints tables.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table, indented by two spaces. Empty cells become "-". It replaces the control characters in data of clusters.
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
	_ = w.Flush() // a command cannot report that its output cannot be written
}

// plain replaces the control characters of a terminal in text.
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

// format is the output format of a command.
type format string

// The output formats of tables and data.
const (
	formatTable format = ""
	formatWide  format = "wide"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

// check returns an error if the format is none of the known ones.
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

// addOutput adds the flag for the format of a command, and completes it.
func addOutput(cmd *cobra.Command, f *format, usage string, formats ...format) {
	cmd.Flags().StringVarP((*string)(f), "output", "o", string(*f), usage)
	words := make([]string, len(formats))
	for i, known := range formats {
		words[i] = string(known)
	}
	completeFlag(cmd, "output", completeValues(words...))
}

// isData reports whether programs read the format.
func (f format) isData() bool { return f == formatJSON || f == formatYAML }

// printData writes a value as JSON or YAML.
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

// colour is the escape sequence of a colour on a terminal.
type colour string

const (
	red    colour = "\x1b[31m"
	yellow colour = "\x1b[33m"
	green  colour = "\x1b[32m"
)

// isTerminal reports whether a terminal shows what is written.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// paint returns a function that colours text. It returns the text unchanged if out is not a terminal or NO_COLOR is set
// (https://no-color.org).
func paint(out io.Writer) func(colour, string) string {
	if os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(out) {
		return func(c colour, text string) string { return string(c) + text + "\x1b[0m" }
	}
	return func(_ colour, text string) string { return text }
}
