// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path"
	"strings"
)

// checkMarks returns the blocks of commands of which nobody says who runs them, and the marks that say what is not so.
func checkMarks(d *document, known *facts) []problem {
	var problems []problem
	used := map[int]bool{}
	for _, b := range d.blocks {
		if b.language != "sh" {
			continue
		}
		near, far := d.above(b), d.around(b)
		for _, m := range []*mark{near, far} {
			if m != nil {
				used[m.line] = true
			}
		}
		switch {
		case near == nil && far == nil:
			problems = append(problems, problem{
				d.path, b.line,
				"nobody runs this block: have a test walk the document, or say why not (<!-- not run: reason -->)",
			})
		case far != nil && far.walked && near != nil && near != far && !near.walked:
			problems = append(problems, problem{d.path, b.line, "the test that walks this section runs this block too: make it no sh block, or move it"})
		}
	}
	for _, m := range d.marks {
		if !used[m.line] {
			problems = append(problems, problem{d.path, m.line, "this mark is above no sh block: take it away"})
		}
		if reason := known.doubt(d, m); reason != "" {
			problems = append(problems, problem{d.path, m.line, reason})
		}
	}
	return problems
}

// doubt returns what is wrong with a mark, or nothing.
func (f *facts) doubt(d *document, m mark) string {
	if !m.walked {
		if m.text == "" {
			return "say why the block is not run"
		}
		return ""
	}
	test := testName.FindStringSubmatch(m.text)
	switch {
	case test == nil:
		return fmt.Sprintf("%q names no test: write folder.TestName", m.text)
	case !f.hasTest(test[1], test[2]):
		return fmt.Sprintf("%s has no %s", test[1], test[2])
	case !f.testsMention(test[1], path.Base(d.path)):
		return fmt.Sprintf("the tests of %s do not read %s", test[1], path.Base(d.path))
	}
	return ""
}

// above returns the mark right above a block, blank lines aside.
func (d *document) above(b block) *mark {
	at := b.line - 2 // the fence's line
	for at > 0 && strings.TrimSpace(d.lines[at-1]) == "" {
		at--
	}
	return d.markAt(at)
}

// around returns the mark right below the heading of a section that a block lies in, the nearest first.
func (d *document) around(b block) *mark {
	level := 7
	for i := len(d.headings) - 1; i >= 0; i-- {
		h := d.headings[i]
		if h.line > b.line || h.level >= level {
			continue
		}
		level = h.level
		at := h.line + 1
		for at < len(d.lines) && strings.TrimSpace(d.lines[at-1]) == "" {
			at++
		}
		if m := d.markAt(at); m != nil {
			return m
		}
	}
	return nil
}

func (d *document) markAt(line int) *mark {
	for i := range d.marks {
		if d.marks[i].line == line {
			return &d.marks[i]
		}
	}
	return nil
}
