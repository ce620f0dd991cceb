// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// errEfficacy says that the report itself holds the reason for the failure.
var errEfficacy = errors.New("the tests let too many mutants live")

// The statuses of gremlins that count.
const (
	killed     = "KILLED"
	lived      = "LIVED"
	timedOut   = "TIMED OUT"
	notCovered = "NOT COVERED"
)

// mutant is one changed token and what became of it.
type mutant struct {
	pkg    string
	file   string // relative to the module's root, with slashes
	line   int
	column int
	kind   string
	status string
	source string // the line of the source, trimmed
}

// decode reads gremlins' report on a package.
func decode(text []byte, root, pkg string) ([]mutant, error) {
	var report struct {
		Files []struct {
			Name      string `json:"file_name"`
			Mutations []struct {
				Line   int    `json:"line"`
				Column int    `json:"column"`
				Type   string `json:"type"`
				Status string `json:"status"`
			} `json:"mutations"`
		} `json:"files"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, fmt.Errorf("gremlins' report on %s: %w", pkg, err)
	}
	var mutants []mutant
	for _, f := range report.Files {
		file := path.Join(pkg, f.Name) // gremlins names files relative to the folder that it was given
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(text), "\n")
		for _, m := range f.Mutations {
			found := mutant{pkg: pkg, file: file, line: m.Line, column: m.Column, kind: m.Type, status: m.Status}
			if m.Line >= 1 && m.Line <= len(lines) {
				found.source = strings.TrimSpace(lines[m.Line-1])
			}
			mutants = append(mutants, found)
		}
	}
	return mutants, nil
}

// entry is how tools/mutation/README.md names a survivor: stable under edits elsewhere in the file.
func (m mutant) entry() string {
	return fmt.Sprintf("%s %s: ``%s``", m.file, m.kind, m.source)
}

// tally counts mutants by status.
type tally map[string]int

// efficacy returns the percentage of mutants that were killed, 100 if there are none.
func (t tally) efficacy() float64 {
	all := t[killed] + t[lived] + t[timedOut] + t[notCovered]
	if all == 0 {
		return 100
	}
	return 100 * float64(t[killed]) / float64(all)
}

func (t tally) row(out io.Writer, name string) {
	fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%.1f%%\t\n",
		name, t[killed], t[lived], t[notCovered], t[timedOut], t.efficacy())
}

// judge prints the counts per package and the survivors, and returns errEfficacy below the minimum.
func judge(out io.Writer, mutants []mutant, known string, minimum float64) error {
	total := tally{}
	perPackage := map[string]tally{}
	var packages []string
	for _, m := range mutants {
		if perPackage[m.pkg] == nil {
			perPackage[m.pkg] = tally{}
			packages = append(packages, m.pkg)
		}
		perPackage[m.pkg][m.status]++
		total[m.status]++
	}
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "package\tkilled\tlived\tnot covered\ttimed out\tefficacy\t")
	for _, name := range packages {
		perPackage[name].row(table, name)
	}
	total.row(table, "total")
	if err := table.Flush(); err != nil {
		return err
	}
	printSurvivors(out, mutants, known)
	if got := total.efficacy(); got < minimum {
		fmt.Fprintf(out, "\nefficacy %.1f%% is below %.1f%%\n", got, minimum)
		return errEfficacy
	}
	return nil
}

func printSurvivors(out io.Writer, mutants []mutant, known string) {
	survivors := slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool {
		return m.status != lived && m.status != timedOut && m.status != notCovered
	})
	slices.SortFunc(survivors, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column),
			cmp.Compare(a.kind, b.kind))
	})
	var unread []string
	for i, m := range survivors {
		if i == 0 {
			fmt.Fprintln(out, "\nsurvivors:")
		}
		note := ""
		if !strings.Contains(known, m.entry()) {
			note = "  (unread)"
			unread = append(unread, m.entry())
		}
		fmt.Fprintf(out, "  %s:%d:%d: %s %s%s\n", m.file, m.line, m.column, m.status, m.kind, note)
	}
	slices.Sort(unread)
	for i, entry := range slices.Compact(unread) {
		if i == 0 {
			fmt.Fprintln(out, "\nunread: add a test, or list it in tools/mutation/README.md with the reason:")
		}
		fmt.Fprintf(out, "- %s\n", entry)
	}
}
