// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

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
