// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// document holds the checked parts of a text in Markdown. Lines count from 1.
type document struct {
	path    string
	source  []byte
	anchors map[string]int // how many headings have it
	links   []part         // their targets
	spans   []part         // code within the text
	texts   []part         // text that is not code
	blocks  []block
	marks   map[ast.Node]*mark
	rows    []row
	// sections are the headings above the node that is being parsed, each with its level.
	sections []*ast.Heading
}

// part is a text and the line where it begins.
type part struct {
	line int
	text string
}

// block is a block of code, with the marks right above it and the nearest one below a heading above it.
type block struct {
	part
	language  string // "indented" if it has no fence
	near, far *mark
}

// mark is a comment that says who runs the blocks below it.
type mark struct {
	part
	walked, used bool
}

// row is one of a table, with the first row of that table.
type row struct {
	line         int
	heads, cells []string
}

var markLine = regexp.MustCompile(`^<!-- (not run|walked by):(.*)-->$`)

// parse returns the document of a text.
func parse(path string, source []byte) *document {
	d := &document{path: path, source: source, anchors: map[string]int{}, marks: map[ast.Node]*mark{}}
	root := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(source))
	d.each(root, d.findMark)
	d.each(root, d.add)
	return d
}

// each calls f with a node and all nodes below it.
func (d *document) each(root ast.Node, f func(ast.Node)) {
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // no call returns an error
		if entering {
			f(n)
		}
		return ast.WalkContinue, nil
	})
}

func (d *document) findMark(n ast.Node) {
	if n.Kind() == ast.KindHTMLBlock {
		if found := markLine.FindStringSubmatch(strings.TrimSpace(string(n.Lines().Value(d.source)))); found != nil {
			d.marks[n] = &mark{part: part{d.line(n), strings.TrimSpace(found[2])}, walked: found[1] == "walked by"}
		}
	}
}

func (d *document) add(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		for len(d.sections) > 0 && d.sections[len(d.sections)-1].Level >= n.Level {
			d.sections = d.sections[:len(d.sections)-1]
		}
		d.sections = append(d.sections, n)
		anchor := slug(d.plain(n))
		d.anchors[anchor]++
		if same := d.anchors[anchor]; same > 1 {
			d.anchors[fmt.Sprintf("%s-%d", anchor, same-1)]++
		}
	case *ast.FencedCodeBlock:
		d.block(n, string(n.Language(d.source)))
	case *ast.CodeBlock:
		d.block(n, "indented")
	case *ast.Link:
		d.links = append(d.links, part{d.line(n), string(n.Destination)})
	case *ast.Image:
		d.links = append(d.links, part{d.line(n), string(n.Destination)})
	case *ast.CodeSpan:
		d.spans = append(d.spans, part{d.line(n), strings.Join(strings.Fields(d.plain(n)), " ")})
	case *ast.Text:
		if n.Parent().Kind() != ast.KindCodeSpan {
			d.texts = append(d.texts, part{d.line(n), string(n.Value(d.source))})
		}
	case *tables.TableRow:
		d.rows = append(d.rows, row{d.line(n), d.cells(n.Parent().FirstChild()), d.cells(n)})
	}
}

func (d *document) block(n ast.Node, language string) {
	lines := n.Lines()
	if lines.Len() == 0 {
		return
	}
	b := block{part: part{d.lineAt(lines.At(0).Start), string(lines.Value(d.source))}, language: language}
	if above := n.PreviousSibling(); above != nil {
		b.near = d.marks[above]
	}
	for _, h := range d.sections {
		if m := d.marks[h.NextSibling()]; m != nil {
			b.far = m
		}
	}
	d.blocks = append(d.blocks, b)
}

func (d *document) cells(row ast.Node) []string {
	var cells []string
	for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
		cells = append(cells, string(cell.Lines().Value(d.source)))
	}
	return cells
}

// plain returns the text below a node, without what formats it.
func (d *document) plain(n ast.Node) string {
	var b strings.Builder
	d.each(n, func(n ast.Node) {
		if t, ok := n.(*ast.Text); ok {
			b.Write(t.Value(d.source))
		}
	})
	return b.String()
}

func (d *document) line(n ast.Node) int { return d.lineAt(n.Pos()) }

func (d *document) lineAt(at int) int { return 1 + bytes.Count(d.source[:max(at, 0)], []byte("\n")) }

// slug returns the anchor that GitHub gives a heading.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
