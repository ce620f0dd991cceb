// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
)

// proved is the heading of a column that names tests, in tables whose every line is a promise.
const proved = "The test that proves it"

// proof is a test in such a column, with the part of it that stands in parentheses behind.
var proof = regexp.MustCompile("`([^`]+)\\.((?:Test|Benchmark|Fuzz)\\w*)`(?: \\((\\w+)\\))?")

// checkProofs returns the lines of tables that promise something and name no test, and the parts of tests that there are
// not. Whether there is a test of that name, checkPaths says.
func checkProofs(d *document, known *facts) []problem {
	var problems []problem
	inside := false
	for i, line := range d.lines {
		cells := cellsOf(line)
		last := ""
		if len(cells) > 0 {
			last = cells[len(cells)-1]
		}
		switch {
		case last == "":
			inside = false
		case last == proved:
			inside = true
		case inside && strings.Trim(last, "-:") != "":
			problems = append(problems, doubts(d.path, i+1, last, known)...)
		}
	}
	return problems
}

// doubts returns what is wrong with the tests that a cell names.
func doubts(path string, line int, cell string, known *facts) []problem {
	tests := proof.FindAllStringSubmatch(cell, -1)
	if len(tests) == 0 {
		return []problem{{path, line, "no test proves this line: write `folder.TestName` into its last column"}}
	}
	var problems []problem
	for _, test := range tests {
		if folder, part := test[1], test[3]; part != "" && !known.testsMention(folder, fmt.Sprintf("%q", part)) {
			problems = append(problems, problem{path, line, fmt.Sprintf("%s.%s has no part %s", folder, test[2], part)})
		}
	}
	return problems
}

// cellsOf returns the cells of a table's line; none where it is no line of a table.
func cellsOf(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") || !strings.HasSuffix(line, "|") || len(line) < 2 {
		return nil
	}
	cells := strings.Split(strings.ReplaceAll(line[1:len(line)-1], `\|`, "¦"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}
