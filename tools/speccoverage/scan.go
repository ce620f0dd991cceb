// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	goMention    = regexp.MustCompile(`^//\s*spec:\s*(.*)$`)
	txtarMention = regexp.MustCompile(`^#\s*spec:\s*(.*)$`)
	separator    = regexp.MustCompile(`[,\s]+`)
)

// scan returns the mentions in the test files (*_test.go) and stories (*.txtar) below root, in the order of the walk.
func scan(root string) ([]mention, error) {
	var mentions []mention
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if entry.IsDir() {
			if skipDir(rel) {
				return filepath.SkipDir
			}
			return nil
		}
		found, err := scanFile(path, rel)
		mentions = append(mentions, found...)
		return err
	})
	return mentions, err
}

// skipDir reports whether a folder is built, hidden, or scratch.
func skipDir(rel string) bool {
	return rel == "bin" || rel == "out" || (rel != "." && strings.HasPrefix(filepath.Base(rel), "."))
}

func scanFile(path, rel string) ([]mention, error) {
	switch {
	case strings.HasSuffix(rel, ".txtar"):
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return scanStory(rel, string(text)), nil
	case strings.HasSuffix(rel, "_test.go"):
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return scanTest(rel, text)
	}
	return nil, nil
}

func scanStory(rel, text string) []mention {
	var mentions []mention
	n := 0
	for line := range strings.Lines(text) {
		n++
		for _, id := range ids(txtarMention, line) {
			mentions = append(mentions, mention{id: id, file: rel, line: n, test: rel})
		}
	}
	return mentions
}

func scanTest(rel string, text []byte) ([]mention, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, rel, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var mentions []mention
	for _, group := range file.Comments {
		for _, comment := range group.List {
			for _, id := range ids(goMention, comment.Text) {
				mentions = append(mentions, mention{
					id: id, file: rel, line: fset.Position(comment.Pos()).Line, test: rel + owner(file, comment),
				})
			}
		}
	}
	return mentions, nil
}

// ids returns the names in a comment of the given form, none if it has another.
func ids(form *regexp.Regexp, comment string) []string {
	m := form.FindStringSubmatch(strings.TrimSpace(comment))
	if m == nil {
		return nil
	}
	return slices.DeleteFunc(separator.Split(m[1], -1), func(s string) bool { return s == "" })
}

// owner returns ":" and the name of the function that a comment stands in or above, or nothing for the file's own.
func owner(file *ast.File, comment *ast.Comment) string {
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		start := fn.Pos()
		if fn.Doc != nil {
			start = fn.Doc.Pos()
		}
		if start <= comment.Pos() && comment.Pos() < fn.End() {
			return ":" + fn.Name.Name
		}
	}
	return ""
}
