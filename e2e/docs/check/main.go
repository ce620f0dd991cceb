// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command check says where the documents are not true: links and anchors that lead nowhere, commands, flags, targets and
// paths that there are not, manifests that the kinds' schemas do not know, blocks of commands that nobody runs, and lines
// of a table with the column "The test that proves it" that name no test.
//
// Each block marked sh is either run by a test that follows the document, or says why it is not. One comment says so, right
// below a heading for all of its section, or right above a block:
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
	"path/filepath"
	"slices"
	"strings"
)

// errUntrue says that the problems that were printed are the reason for the failure.
var errUntrue = errors.New("the documents are not true")

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	root := flags.String("root", ".", "the repository's root")
	if err := flags.Parse(args); err != nil {
		return err
	}
	known, err := gather(*root)
	if err != nil {
		return err
	}
	documents, err := read(*root)
	if err != nil {
		return err
	}
	problems := check(documents, known)
	for _, p := range problems {
		fmt.Fprintln(out, p)
	}
	if len(problems) > 0 {
		return errUntrue
	}
	return nil
}

// problem is what is not true, and where.
type problem struct {
	path string
	line int
	text string
}

func (p problem) String() string { return fmt.Sprintf("%s:%d: %s", p.path, p.line, p.text) }

// check returns all problems of the documents, in the order in which a reader finds them.
func check(documents map[string]*document, known *facts) []problem {
	problems := append(checkIndex(documents), checkObjects(documents)...)
	words := vocabularyOf(documents[glossaryPath])
	for _, d := range documents {
		problems = append(problems, checkVocabulary(d, words)...)
		problems = append(problems, checkLinks(d, documents, known)...)
		problems = append(problems, checkMarks(d, known)...)
		problems = append(problems, checkWords(d, known)...)
		problems = append(problems, checkPaths(d, known)...)
		problems = append(problems, checkManifests(d, known)...)
		problems = append(problems, checkProofs(d, known)...)
	}
	slices.SortFunc(problems, func(a, b problem) int {
		return cmp.Or(strings.Compare(a.path, b.path), cmp.Compare(a.line, b.line), strings.Compare(a.text, b.text))
	})
	return slices.Compact(problems)
}

// foreign are the folders whose documents are not ours, or not for reading.
var foreign = []string{".git", "bin", "out", "testdata"}

// read returns the documents below a root, by path.
func read(root string) (map[string]*document, error) {
	documents := map[string]*document{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if slices.Contains(foreign, entry.Name()) && path != root {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		documents[filepath.ToSlash(name)] = parse(filepath.ToSlash(name), string(text))
		return nil
	})
	return documents, err
}
