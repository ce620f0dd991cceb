// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var scheme = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)

// checkLinks returns the links within the repository that lead nowhere.
func checkLinks(d *document, all map[string]*document, known *facts) []problem {
	var problems []problem
	for _, link := range d.links {
		if scheme.MatchString(link.text) {
			continue
		}
		if reason := follow(d, link.text, all, known); reason != "" {
			problems = append(problems, problem{d.path, link.line, reason})
		}
	}
	return problems
}

// follow returns why a link leads nowhere, or nothing.
func follow(d *document, link string, all map[string]*document, known *facts) string {
	file, anchor, _ := strings.Cut(link, "#")
	target := d.path
	if file != "" {
		target = path.Join(path.Dir(d.path), file)
	}
	if _, err := os.Stat(filepath.Join(known.root, filepath.FromSlash(target))); err != nil {
		if all[target] == nil {
			return fmt.Sprintf("the link %s leads nowhere: there is no %s", link, target)
		}
	}
	to := all[target]
	if anchor == "" || to == nil {
		return ""
	}
	if !slices.ContainsFunc(to.headings, func(h heading) bool { return h.anchor == anchor }) {
		return fmt.Sprintf("the link %s leads nowhere: %s has no heading #%s", link, target, anchor)
	}
	return ""
}

const index = "docs/README.md"

// checkIndex returns the documents of docs that the index of docs does not name.
func checkIndex(all map[string]*document) []problem {
	from := all[index]
	if from == nil {
		return nil
	}
	var problems []problem
	for name := range all {
		named := name == index || slices.ContainsFunc(from.links, func(l part) bool {
			file, _, _ := strings.Cut(l.text, "#")
			return path.Join("docs", file) == name
		})
		if path.Dir(name) == "docs" && !named {
			problems = append(problems, problem{index, 1, fmt.Sprintf("%s is not named here: nobody finds it", name)})
		}
	}
	return problems
}

var (
	manifestPath = regexp.MustCompile(`\bmanifests/[A-Za-z0-9_./-]*`)
	sourcePath   = regexp.MustCompile(`^(cmd|controllers|coredns-plugin|docs|e2e|manifests|pkg|tools)/[A-Za-z0-9_./-]+$`)
	testName     = regexp.MustCompile(`^(.*)\.((?:Test|Benchmark|Fuzz)\w*)$`)
)

// checkPaths returns the paths of this repository that there are not: those of manifests wherever they stand, others where
// a code span is one. A span such as e2e/integration/agent.TestWrites names a test.
func checkPaths(d *document, known *facts) []problem {
	var problems []problem
	for i, line := range d.lines {
		for _, at := range manifestPath.FindAllStringIndex(line, -1) {
			name := strings.TrimRight(line[at[0]:at[1]], "./")
			unfinished := strings.HasPrefix(line[at[1]:], "…") || strings.HasPrefix(line[at[1]:], "{") || strings.HasPrefix(line[at[1]:], "<")
			if !unfinished && !known.has(name) {
				problems = append(problems, problem{d.path, i + 1, "there is no " + name})
			}
		}
	}
	for _, span := range d.spans {
		if reason := known.wrongCase(span.text); reason != "" {
			problems = append(problems, problem{d.path, span.line, reason})
		}
		if !sourcePath.MatchString(span.text) {
			continue
		}
		if test := testName.FindStringSubmatch(span.text); test != nil {
			if !known.hasTest(test[1], test[2]) {
				problems = append(problems, problem{d.path, span.line, fmt.Sprintf("%s has no %s", test[1], test[2])})
			}
			continue
		}
		if !known.has(strings.TrimRight(span.text, "/")) && !known.hasName(span.text) {
			problems = append(problems, problem{d.path, span.line, "there is no " + span.text})
		}
	}
	return problems
}

// caseName is a span such as "chaos: hub restarted", which names a case among the tests of a folder.
var caseName = regexp.MustCompile(`^(chaos|story): (.+)$`)

// casesOf says where the cases are, and what comes before their names there.
var casesOf = map[string]struct{ folder, before string }{
	"chaos": {"e2e/chaos", "{name: "},
	"story": {"e2e/stories", "{"},
}

// wrongCase returns what is wrong with a span that names a case; "" for other spans.
func (f *facts) wrongCase(text string) string {
	named := caseName.FindStringSubmatch(text)
	if named == nil {
		return ""
	}
	where := casesOf[named[1]]
	if f.testsMention(where.folder, where.before+strconv.Quote(named[2])) {
		return ""
	}
	return fmt.Sprintf("%s has no %q", where.folder, named[2])
}
