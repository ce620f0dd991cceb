// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
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

// simple is a command as the shell would run it, its words without quotes.
type simple struct {
	line  int // within the text, from 0
	words []string
}

// heredoc is the text that a command reads.
type heredoc struct {
	line int // of its first line within the text, from 0
	text string
}

// angled is a placeholder that the shell would take for a redirection.
var angled = regexp.MustCompile(`<[a-zA-Z][\w .-]*>`)

// asWritten returns a configuration that leaves variables as they are, and runs no command. An expansion writes to it.
func asWritten() *expand.Config {
	return &expand.Config{
		Env:      expand.FuncEnviron(func(name string) string { return "$" + name }),
		CmdSubst: func(io.Writer, *syntax.CmdSubst) error { return nil },
	}
}

// script returns the commands of a text in shell, those within $( ) included, and their heredocs.
func script(text string) ([]simple, []heredoc, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(angled.ReplaceAllString(text, placeholder)), "")
	if err != nil {
		return nil, nil, err
	}
	var commands []simple
	var given []heredoc
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.CallExpr:
			c := simple{line: int(n.Pos().Line()) - 1}
			for _, arg := range n.Args {
				word, expandErr := expand.Literal(asWritten(), arg)
				if expandErr != nil {
					word = placeholder
				}
				c.words = append(c.words, word)
			}
			if len(c.words) > 1 && (c.words[0] == "sudo" || c.words[0] == "exec") {
				c.words = c.words[1:]
			}
			if len(c.words) > 0 {
				commands = append(commands, c)
			}
		case *syntax.Redirect:
			if n.Hdoc != nil {
				if body, expandErr := expand.Document(asWritten(), n.Hdoc); expandErr == nil {
					given = append(given, heredoc{int(n.Hdoc.Pos().Line()) - 1, body})
				}
			}
		}
		return true
	})
	return commands, given, nil
}
