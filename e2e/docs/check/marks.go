// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path"
	"regexp"
	"strconv"
)

// checkMarks finds blocks of commands without a mark, and marks that are wrong.
func (c *checker) checkMarks(d *document) {
	for _, b := range d.blocks {
		if b.language != "sh" {
			continue
		}
		for _, m := range []*mark{b.near, b.far} {
			if m != nil {
				m.used = true
			}
		}
		switch {
		case b.near == nil && b.far == nil:
			c.reportf(d, b.line, "no test runs this block: have a test read the document, or give the reason (<!-- not run: reason -->)")
		case b.far != nil && b.far.walked && b.near != nil && !b.near.walked:
			c.reportf(d, b.line, "the test that runs this section runs this block too: make it no sh block, or move it")
		}
	}
	for _, m := range d.marks {
		if !m.used {
			c.reportf(d, m.line, "this mark is above no sh block: remove it")
		}
		test := testName.FindStringSubmatch(m.text)
		switch {
		case !m.walked && m.text == "":
			c.reportf(d, m.line, "say why the block is not run")
		case !m.walked:
		case test == nil:
			c.reportf(d, m.line, "%q names no test: write folder.TestName", m.text)
		case !c.hasTest(test[1], test[2]):
			c.reportf(d, m.line, "%s has no %s", test[1], test[2])
		case !c.testsMention(test[1], path.Base(d.path)):
			c.reportf(d, m.line, "the tests of %s do not read %s", test[1], path.Base(d.path))
		}
	}
}

// proved is the heading of a column that names tests, in tables whose every line is a promise.
const proved = "The test that proves it"

// proof is a test in such a column, with the part of it in parentheses behind.
var proof = regexp.MustCompile("`([^`]+)\\.((?:Test|Benchmark|Fuzz)\\w*)`(?: \\((\\w+)\\))?")

// checkProofs finds lines of tables that promise something and name no test, and parts that tests do not have. checkPaths
// finds the tests that do not exist.
func (c *checker) checkProofs(d *document) {
	for _, row := range d.rows {
		last := len(row.heads) - 1
		if row.heads[last] != proved {
			continue
		}
		tests := proof.FindAllStringSubmatch(row.cells[last], -1)
		if len(tests) == 0 {
			c.reportf(d, row.line, "no test proves this line: write `folder.TestName` into its last column")
		}
		for _, test := range tests {
			if folder, part := test[1], test[3]; part != "" && !c.testsMention(folder, strconv.Quote(part)) {
				c.reportf(d, row.line, "%s.%s has no part %s", folder, test[2], part)
			}
		}
	}
}
