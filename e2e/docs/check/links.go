// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	scheme       = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
	manifestPath = regexp.MustCompile(`\bmanifests/[A-Za-z0-9_./-]*[…{<]?`)
	sourcePath   = regexp.MustCompile(`^(cmd|controllers|coredns-plugin|docs|e2e|internal|manifests|pkg|tools)/[A-Za-z0-9_./-]+$`)
	testName     = regexp.MustCompile(`^(.*)\.((?:Test|Benchmark|Fuzz)\w*)$`)
	// caseName is a span such as "chaos: hub restarted", which names a case among the tests of a folder.
	caseName = regexp.MustCompile(`^(chaos|story): (.+)$`)
)

// casesOf are the folders of the cases, and what precedes their names there.
var casesOf = map[string]struct{ folder, before string }{
	"chaos": {"e2e/chaos", "{name: "},
	"story": {"e2e/stories", "{"},
}

// checkLinks finds links within the repository without a target.
func (c *checker) checkLinks(d *document) {
	for _, link := range d.links {
		if scheme.MatchString(link.text) {
			continue
		}
		file, anchor, _ := strings.Cut(link.text, "#")
		target := d.path
		if file != "" {
			target = path.Join(path.Dir(d.path), file)
		}
		to := c.documents[target]
		switch {
		case to == nil && !c.has(target):
			c.reportf(d, link.line, "the link %s has no target: there is no %s", link.text, target)
		case to != nil && anchor != "" && to.anchors[anchor] == 0:
			c.reportf(d, link.line, "the link %s has no target: %s has no heading #%s", link.text, target, anchor)
		}
	}
}

// checkIndex finds documents of docs that the index of docs does not name.
func (c *checker) checkIndex() {
	from := c.documents["docs/README.md"]
	if from == nil {
		return
	}
	named := []string{from.path}
	for _, link := range from.links {
		file, _, _ := strings.Cut(link.text, "#")
		named = append(named, path.Join("docs", file))
	}
	for name := range c.documents {
		if path.Dir(name) == "docs" && !slices.Contains(named, name) {
			c.reportf(from, 1, "%s is not named here", name)
		}
	}
}

// checkPaths finds paths that this repository does not have: those of manifests anywhere, others if a code span is one. A span
// such as e2e/integration/agent.TestWrites names a test, and internal/hub.Store something of a package.
func (c *checker) checkPaths(d *document) {
	for i, line := range strings.Split(string(d.source), "\n") {
		for _, name := range manifestPath.FindAllString(line, -1) {
			if name = strings.TrimRight(name, "./"); !strings.ContainsAny(name, "…{<") && !c.has(name) {
				c.reportf(d, i+1, "there is no %s", name)
			}
		}
	}
	for _, span := range d.spans {
		if named := caseName.FindStringSubmatch(span.text); named != nil {
			if where := casesOf[named[1]]; !c.testsMention(where.folder, where.before+strconv.Quote(named[2])) {
				c.reportf(d, span.line, "%s has no %q", where.folder, named[2])
			}
		}
		if !sourcePath.MatchString(span.text) {
			continue
		}
		folder, base := path.Split(span.text)
		first, _, dotted := strings.Cut(base, ".")
		test := testName.FindStringSubmatch(span.text)
		switch {
		case len(test) == 3 && !c.hasTest(test[1], test[2]):
			c.reportf(d, span.line, "%s has no %s", test[1], test[2])
		case len(test) == 0 && !c.has(strings.TrimRight(span.text, "/")) && (!dotted || !c.has(folder+first)):
			c.reportf(d, span.line, "there is no %s", span.text)
		}
	}
}
