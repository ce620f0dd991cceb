// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command check finds errors in the documents: links and anchors without a target, commands, flags, make targets, paths and
// tests that do not exist, manifests that the schemas of their kinds refuse, blocks of commands that no test runs, lines of a
// table with the column "The test that proves it" that name no test, and words that the glossary does not allow, in the
// product's messages too.
//
// Each block marked sh is either run by a test that reads the document, or has a reason why not. A comment contains either,
// right below a heading for all of its section, or right above a block:
//
//	<!-- walked by: e2e/integration/cli.TestInstallDocument -->
//	<!-- not run: it needs a cluster of EKS -->
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// errProblems is returned if problems were printed.
var errProblems = errors.New("the documents have errors")

func main() {
	root := flag.String("root", ".", "the repository's root")
	flag.Parse()
	if err := run(os.DirFS(*root), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

// run prints all problems of a repository, sorted by place.
func run(tree fs.FS, out io.Writer) error {
	c, err := gather(tree)
	if err != nil {
		return err
	}
	if c.documents, err = read(tree); err != nil {
		return err
	}
	problems := c.check()
	for _, p := range problems {
		fmt.Fprintln(out, p)
	}
	if len(problems) > 0 {
		return errProblems
	}
	return nil
}

// problem is an error of a document, at a line.
type problem struct {
	path string
	line int
	text string
}

func (p problem) String() string { return fmt.Sprintf("%s:%d: %s", p.path, p.line, p.text) }

func (c *checker) reportf(d *document, line int, format string, args ...any) {
	c.problems = append(c.problems, problem{d.path, line, fmt.Sprintf(format, args...)})
}

func (c *checker) check() []problem {
	c.checkIndex()
	c.checkObjects()
	words := vocabularyOf(c.documents[glossaryPath])
	for _, d := range c.documents {
		for _, check := range []func(*document){c.checkLinks, c.checkPaths, c.checkMarks, c.checkProofs, c.checkWords, c.checkManifests} {
			check(d)
		}
		c.checkVocabulary(d, words)
	}
	slices.SortFunc(c.problems, func(a, b problem) int {
		return cmp.Or(strings.Compare(a.path, b.path), cmp.Compare(a.line, b.line), strings.Compare(a.text, b.text))
	})
	return slices.Compact(c.problems)
}

var (
	// skipped are folders whose documents are not the project's own.
	skipped = []string{".git", "bin", "out", "testdata"}
	// messages are the files whose texts users read; tests and generated files are not among them.
	messages  = regexp.MustCompile(`^(cmd|controllers|coredns-plugin|internal|pkg)/.*\.go$|^manifests/monitoring/.*\.(json|yaml)$`)
	noMessage = regexp.MustCompile(`_test\.go$|/zz_generated`)
)

// read returns the documents by path, and the files with messages, which have nothing but texts.
func read(tree fs.FS) (map[string]*document, error) {
	documents := map[string]*document{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains(skipped, entry.Name()) {
			return fs.SkipDir
		}
		message := messages.MatchString(name) && !noMessage.MatchString(name)
		if entry.IsDir() || path.Ext(name) != ".md" && !message {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		if message {
			documents[name], err = parseMessages(name, text)
			return err
		}
		documents[name] = parse(name, text)
		return nil
	})
	return documents, err
}
