// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The repository obeys its own rules.
func TestRepository(t *testing.T) {
	t.Parallel()
	found, err := check(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

// Each rule can fail: what is found in the fixtures is exactly what their "// want: rule" comments announce.
func TestFixtures(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bad", "good", "empty"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := filepath.Join("testdata", name)
			violations, err := check(root)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range violations {
				got = append(got, fmt.Sprintf("%s:%d: %s", v.file, v.line, v.rule))
			}
			got = slices.Compact(got)
			want := wanted(t, root)
			for _, w := range want {
				if !slices.Contains(got, w) {
					t.Errorf("%s was not found", w)
				}
			}
			for i, g := range got {
				if !slices.Contains(want, g) {
					t.Errorf("%s was not announced: %s", g, violations[i])
				}
			}
		})
	}
}

// Every rule has a fixture that breaks it.
func TestEveryRuleHasAFixture(t *testing.T) {
	t.Parallel()
	want := strings.Join(wanted(t, filepath.Join("testdata", "bad")), "\n")
	for _, rule := range []string{"import-order", "purity", "package-state", "cluster-write", "sleep", "header"} {
		if !strings.Contains(want, ": "+rule) {
			t.Errorf("no fixture breaks %s", rule)
		}
	}
}

func TestViolationString(t *testing.T) {
	t.Parallel()
	v := violation{file: "pkg/merge/merge.go", line: 7, rule: "purity", text: "no clock"}
	if got, want := v.String(), "pkg/merge/merge.go:7: purity: no clock"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A module that does not compile cannot be judged.
func TestBrokenModule(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":           "module example.com/broken\n\ngo 1.26.0\n",
		"pkg/merge/bad.go": header + "\npackage merge\n\nvar _ int = \"text\"\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := check(root); err == nil {
		t.Error("a module that does not compile passes")
	}
}

var want = regexp.MustCompile(`^// want: (\S+)$`)

// wanted returns "file:line: rule" for every want comment below root.
func wanted(t *testing.T, root string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		file := fset.AddFile(path, -1, len(text))
		var s scanner.Scanner
		s.Init(file, text, nil, scanner.ScanComments)
		for {
			pos, tok, literal := s.Scan()
			if tok == token.EOF {
				return nil
			}
			if m := want.FindStringSubmatch(literal); m != nil {
				found = append(found, fmt.Sprintf("%s:%d: %s", filepath.ToSlash(rel), fset.Position(pos).Line, m[1]))
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
