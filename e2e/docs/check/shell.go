// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"
)

// simple is a command as the shell would run it, its words without quotes.
type simple struct {
	line  int // within the text, from 0
	words []string
}

// heredoc is what a command is given to read.
type heredoc struct {
	line int // of its first line within the text, from 0
	text string
}

var heredocStart = regexp.MustCompile(`<<-?['"]?([A-Za-z]+)['"]?`)

// script returns the commands of a text in shell, those within $( ) included, and what they are given to read. It knows as
// much of the shell as documents use.
func script(text string) ([]simple, []heredoc) {
	var commands []simple
	var given []heredoc
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		first, line := i, lines[i]
		for strings.HasSuffix(line, `\`) && i+1 < len(lines) {
			i++
			line = strings.TrimSuffix(line, `\`) + " " + strings.TrimSpace(lines[i])
		}
		if start := heredocStart.FindStringSubmatchIndex(line); start != nil {
			end, from := line[start[2]:start[3]], i+1
			length := slices.IndexFunc(lines[from:], func(l string) bool { return strings.TrimSpace(l) == end })
			if length < 0 {
				length = len(lines) - from
			}
			i = from + length
			given = append(given, heredoc{from, strings.Join(lines[from:i], "\n")})
			line = line[:start[0]] + " " + line[start[1]:]
		}
		for _, words := range split(line) {
			commands = append(commands, simple{first, words})
		}
	}
	return commands, given
}

// split returns the commands of one line, each as its words.
func split(line string) [][]string {
	var commands [][]string
	var words []string
	var word strings.Builder
	quote, inWord := rune(0), false
	endWord := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	endCommand := func() {
		endWord()
		if words = bare(words); len(words) > 0 {
			commands = append(commands, words)
		}
		words = nil
	}
	for at := 0; at < len(line); at++ {
		c := rune(line[at])
		switch {
		case strings.HasPrefix(line[at:], "$(") && quote != '\'':
			inner := substitution(line[at:])
			commands = append(commands, split(strings.TrimSuffix(inner[2:], ")"))...)
			word.WriteString("$()")
			inWord = true
			at += len(inner) - 1
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(line[at])
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case c == '#' && !inWord:
			at = len(line)
		case strings.ContainsRune(";|&()", c):
			endCommand()
		case c == ' ' || c == '\t':
			endWord()
		default:
			word.WriteByte(line[at])
			inWord = true
		}
	}
	endCommand()
	return commands
}

// substitution returns the $( ) that a text begins with, all of the text where it does not end.
func substitution(text string) string {
	depth := 0
	for at, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
			if depth == 0 {
				return text[:at+1]
			}
		}
	}
	return text
}

var (
	assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
	prefixes   = []string{"do", "then", "else", "if", "while", "until", "!", "{", "$", "sudo", "time", "exec"}
)

// bare returns a command without what may stand before it.
func bare(words []string) []string {
	for len(words) > 0 && (slices.Contains(prefixes, words[0]) || assignment.MatchString(words[0])) {
		words = words[1:]
	}
	return words
}
