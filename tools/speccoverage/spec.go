// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// specLine is one requirement of docs/spec.md.
type specLine struct {
	id    string // a section letter and a number, as in E1
	level string // M, S or O
	text  string
}

func (l specLine) section() string { return l.id[:1] }

// specRow matches a row of the tables: | E1 | M | text |.
var specRow = regexp.MustCompile(`^\|\s*([A-Z]\d+)\s*\|\s*([^|]*?)\s*\|\s*(.*?)\s*\|\s*$`)

// parseSpec returns the lines in the order of the document. A duplicate ID, an unknown level, or no line at all is an
// error.
func parseSpec(text string) ([]specLine, error) {
	var lines []specLine
	for row := range strings.Lines(text) {
		m := specRow.FindStringSubmatch(strings.TrimSpace(row))
		if m == nil {
			continue
		}
		line := specLine{id: m[1], level: m[2], text: m[3]}
		if !slices.Contains([]string{"M", "S", "O"}, line.level) {
			return nil, fmt.Errorf("%s: level %q is none of M, S, O", line.id, line.level)
		}
		if slices.ContainsFunc(lines, func(l specLine) bool { return l.id == line.id }) {
			return nil, fmt.Errorf("%s stands there twice", line.id)
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("no line of the form | E1 | M | text |")
	}
	return lines, nil
}

// mention is one ID named by one test.
type mention struct {
	id   string
	file string // relative to the root, with slashes
	line int
	test string // file:TestName, or the file for a txtar story
}

type row struct {
	line  specLine
	tests []string
}

type coverage struct {
	rows    []row
	unknown []mention
}

// compare joins the specification with the mentions: a row per line in the order of the document, tests sorted and
// without duplicates.
func compare(lines []specLine, mentions []mention) coverage {
	tests := map[string][]string{}
	for _, l := range lines {
		tests[l.id] = nil
	}
	var c coverage
	for _, m := range mentions {
		if _, known := tests[m.id]; !known {
			c.unknown = append(c.unknown, m)
			continue
		}
		tests[m.id] = append(tests[m.id], m.test)
	}
	for _, l := range lines {
		slices.Sort(tests[l.id])
		c.rows = append(c.rows, row{line: l, tests: slices.Compact(tests[l.id])})
	}
	return c
}

func (c coverage) gaps() []specLine {
	var gaps []specLine
	for _, r := range c.rows {
		if len(r.tests) == 0 {
			gaps = append(gaps, r.line)
		}
	}
	return gaps
}
