// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// document is what is looked at of a text in Markdown. Lines count from 1.
type document struct {
	path     string
	lines    []string
	headings []heading
	links    []part // their targets
	spans    []part // code within the text
	blocks   []block
	marks    []mark
}

type heading struct {
	line, level int
	anchor      string
}

// part is a text and the line where it begins.
type part struct {
	line int
	text string
}

// block is one of code: fenced, with the language that it states, or indented, with the language "indented".
type block struct {
	part
	language string
}

// mark is a comment that says who runs the blocks below it.
type mark struct {
	part
	walked bool
}

var (
	fenceLine   = regexp.MustCompile("^ *(```+|~~~+) *([a-z]*)[^`]*$")
	headingLine = regexp.MustCompile(`^(#{1,6}) +(.*?) *#*$`)
	markLine    = regexp.MustCompile(`^<!-- (not run|walked by):(.*)-->$`)
	listLine    = regexp.MustCompile(`^ *([-*+]|\d+\.) `)
	codeSpan    = regexp.MustCompile("(?s)``.+?``|`[^`]+`")
	inlineLink  = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)`)
	namedLink   = regexp.MustCompile(`(?m)^\[[^\]]+\]:\s*(\S+)`)
	linkText    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	htmlAnchor  = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
)

// parse returns the document that a text is.
func parse(path, text string) *document {
	d := &document{path: path, lines: strings.Split(text, "\n")}
	seen := map[string]int{}
	list := false // an indented line below an entry of a list belongs to it
	for i := 0; i < len(d.lines); i++ {
		line := d.lines[i]
		switch {
		case strings.TrimSpace(line) == "":
		case fenceLine.MatchString(line):
			i = d.fenced(i)
		case headingLine.MatchString(line):
			d.heading(i, seen)
			list = false
		case markLine.MatchString(line):
			found := markLine.FindStringSubmatch(line)
			d.marks = append(d.marks, mark{part{i + 1, strings.TrimSpace(found[2])}, found[1] == "walked by"})
		case strings.HasPrefix(line, "    ") && !list:
			i = d.indented(i)
		default:
			list = listLine.MatchString(line) || list && strings.HasPrefix(line, " ")
			i = d.paragraph(i)
		}
	}
	return d
}

// fenced takes the block that begins at an index, and returns that of its last line.
func (d *document) fenced(first int) int {
	open := fenceLine.FindStringSubmatch(d.lines[first])
	last := first + 1
	for last < len(d.lines) && !strings.HasPrefix(strings.TrimSpace(d.lines[last]), open[1]) {
		last++
	}
	d.blocks = append(d.blocks, block{part{first + 2, strings.Join(d.lines[first+1:last], "\n")}, open[2]})
	return last
}

func (d *document) indented(first int) int {
	last := first
	for last+1 < len(d.lines) && strings.HasPrefix(d.lines[last+1], "    ") {
		last++
	}
	d.blocks = append(d.blocks, block{part{first + 1, strings.Join(d.lines[first:last+1], "\n")}, "indented"})
	return last
}

func (d *document) heading(at int, seen map[string]int) {
	found := headingLine.FindStringSubmatch(d.lines[at])
	anchor := slug(found[2])
	if n := seen[anchor]; n > 0 {
		seen[anchor]++
		anchor = fmt.Sprintf("%s-%d", anchor, n)
	} else {
		seen[anchor] = 1
	}
	d.headings = append(d.headings, heading{at + 1, len(found[1]), anchor})
	d.inline(at+1, found[2])
}

// paragraph takes the lines up to one that is something else.
func (d *document) paragraph(first int) int {
	last := first
	for last+1 < len(d.lines) {
		next := d.lines[last+1]
		if strings.TrimSpace(next) == "" || fenceLine.MatchString(next) || headingLine.MatchString(next) || markLine.MatchString(next) {
			break
		}
		last++
	}
	d.inline(first+1, strings.Join(d.lines[first:last+1], "\n"))
	return last
}

// inline takes the code and the links within a text.
func (d *document) inline(line int, text string) {
	lineOf := func(at int) int { return line + strings.Count(text[:at], "\n") }
	for _, at := range codeSpan.FindAllStringIndex(text, -1) {
		code := strings.Trim(text[at[0]:at[1]], "` ")
		d.spans = append(d.spans, part{lineOf(at[0]), strings.Join(strings.Fields(code), " ")})
	}
	text = codeSpan.ReplaceAllStringFunc(text, func(code string) string {
		return strings.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return ' '
		}, code)
	})
	for _, pattern := range []*regexp.Regexp{inlineLink, namedLink} {
		for _, at := range pattern.FindAllStringSubmatchIndex(text, -1) {
			d.links = append(d.links, part{lineOf(at[0]), text[at[2]:at[3]]})
		}
	}
	for _, found := range htmlAnchor.FindAllStringSubmatch(text, -1) {
		d.headings = append(d.headings, heading{line, 7, found[1]}) // the lowest: it ends no section
	}
}

// slug returns the anchor that GitHub gives a heading.
func slug(heading string) string {
	heading = linkText.ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}
