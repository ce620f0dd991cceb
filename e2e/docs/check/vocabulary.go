// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	glossaryPath    = "docs/glossary.md"
	unusedTableHead = "| Not used | Write |"
)

var tableRow = regexp.MustCompile(`^\| ([^|]+) \| ([^|]+) \|$`)

// vocabulary maps each word that is not used to what to write instead.
type vocabulary struct {
	pattern *regexp.Regexp
	instead map[string]string
}

// vocabularyOf reads the last table of the glossary.
func vocabularyOf(glossary *document) vocabulary {
	v := vocabulary{instead: map[string]string{}}
	if glossary == nil {
		return v
	}
	var words []string
	inTable := false
	for _, line := range glossary.lines {
		inTable = inTable || line == unusedTableHead
		row := tableRow.FindStringSubmatch(line)
		if !inTable || row == nil || line == unusedTableHead || strings.HasPrefix(row[1], "---") {
			continue
		}
		for _, word := range strings.Split(row[1], ", ") {
			words = append(words, regexp.QuoteMeta(word))
			v.instead[word] = row[2]
		}
	}
	if len(words) > 0 {
		v.pattern = regexp.MustCompile(`(?i)\b(` + strings.Join(words, "|") + `)\b`)
	}
	return v
}

// checkVocabulary returns the uses of words that the glossary does not allow, outside of code, comments and the glossary.
func checkVocabulary(d *document, v vocabulary) []problem {
	if v.pattern == nil || d.path == glossaryPath {
		return nil
	}
	code := map[int]bool{}
	for _, b := range d.blocks {
		for i := range strings.Count(b.text, "\n") + 1 {
			code[b.line+i] = true
		}
	}
	var problems []problem
	for i, line := range d.lines {
		if code[i+1] || strings.HasPrefix(line, "<!--") {
			continue
		}
		for _, word := range v.pattern.FindAllString(codeSpan.ReplaceAllString(line, ""), -1) {
			problems = append(problems, problem{d.path, i + 1, fmt.Sprintf("%q is not used: write %s (%s)", word, v.instead[strings.ToLower(word)], glossaryPath)})
		}
	}
	return problems
}
