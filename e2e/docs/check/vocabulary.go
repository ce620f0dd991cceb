// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
)

const glossaryPath = "docs/glossary.md"

// vocabulary maps each word that is not used to what to write instead.
type vocabulary struct {
	pattern *regexp.Regexp
	instead map[string]string
}

// vocabularyOf reads the table of the glossary that begins with "Not used".
func vocabularyOf(glossary *document) vocabulary {
	v := vocabulary{instead: map[string]string{}}
	if glossary == nil {
		return v
	}
	var words []string
	for _, row := range glossary.rows {
		if row.heads[0] != "Not used" {
			continue
		}
		for word := range strings.SplitSeq(row.cells[0], ", ") {
			words = append(words, regexp.QuoteMeta(word))
			v.instead[word] = row.cells[1]
		}
	}
	v.pattern = regexp.MustCompile(`(?i)\b(` + strings.Join(words, "|") + `)\b`)
	return v
}

// checkVocabulary finds words that the glossary does not allow, outside of code and of the glossary.
func (c *checker) checkVocabulary(d *document, v vocabulary) {
	if len(v.instead) == 0 || d.path == glossaryPath {
		return
	}
	for _, text := range d.texts {
		for _, word := range v.pattern.FindAllString(text.text, -1) {
			c.reportf(d, text.line, "%q is not used: write %s (%s)", word, v.instead[strings.ToLower(word)], glossaryPath)
		}
	}
}

// parseMessages returns what users can read of a file: the string literals of Go, the lines of others that are no comments.
func parseMessages(name string, source []byte) (*document, error) {
	d := &document{path: name}
	if path.Ext(name) != ".go" {
		for i, line := range bytes.Split(source, []byte("\n")) {
			if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) {
				d.texts = append(d.texts, part{i + 1, string(line)})
			}
		}
		return d, nil
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, _ := strconv.Unquote(literal.Value) // the parser accepts valid literals only
			d.texts = append(d.texts, part{files.Position(literal.Pos()).Line, text})
		}
		return true
	})
	return d, nil
}
