// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const exampleSpec = `# Spec
| ID | Level | What holds |
|---|---|---|
| E1 | M | Exports need an export. |
| E2 | S | Names are shared. |
| R1 | M | The oldest wins. |
`

const exampleTest = `package p

import "testing"

// TestDoc has it in its doc comment.
// spec: E1
func TestDoc(t *testing.T) {}

func TestBody(t *testing.T) {
	// spec: E1,R1
	_ = "// spec: X9"
}

// spec: R1

func TestOther(t *testing.T) {}
`

func TestRun(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		files   map[string]string
		args    []string
		want    []string
		wantErr error
	}{
		"gaps are reported and do not fail": {
			files: map[string]string{"pkg/p/p_test.go": exampleTest},
			want: []string{
				"E1  M      pkg/p/p_test.go:TestBody\n           pkg/p/p_test.go:TestDoc\n",
				"E2  S      -\n",
				"R1  M      pkg/p/p_test.go\n           pkg/p/p_test.go:TestBody\n",
				"2 of 3 lines are named by a test\n",
				"gap E2 S: Names are shared.\n",
			},
		},
		"a gap in a required section fails": {
			files:   map[string]string{"pkg/p/p_test.go": exampleTest},
			args:    []string{"-require=R, E"},
			want:    []string{"gap E2 S (required): Names are shared.\n"},
			wantErr: errCoverage,
		},
		"a story covers": {
			files: map[string]string{
				"pkg/p/p_test.go":        exampleTest,
				"e2e/testdata/two.txtar": "the story\n# spec: E2\n-- a --\n",
			},
			args: []string{"-require=E,R"},
			want: []string{"E2  S      e2e/testdata/two.txtar\n", "3 of 3 lines are named by a test\n"},
		},
		"an unknown ID fails": {
			files:   map[string]string{"p_test.go": "package p\n\n// spec: E1, Z4\nfunc TestZ() {}\n"},
			want:    []string{"p_test.go:3: p_test.go:TestZ names Z4, which docs/spec.md does not have\n"},
			wantErr: errCoverage,
		},
		"built and hidden folders do not count": {
			files: map[string]string{"bin/p_test.go": exampleTest, "out/x/p_test.go": exampleTest, ".x/p_test.go": exampleTest},
			want:  []string{"0 of 3 lines are named by a test\n"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write(t, root, "docs/spec.md", exampleSpec)
			for file, text := range tc.files {
				write(t, root, file, text)
			}
			var out strings.Builder
			err := run(append([]string{"-root", root}, tc.args...), &out)
			if !errors.Is(err, tc.wantErr) {
				t.Errorf("error = %v, want %v", err, tc.wantErr)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the report lacks %q:\n%s", want, out.String())
				}
			}
		})
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ spec, require, want string }{
		"an unknown section":   {spec: exampleSpec, require: "E,Q", want: `-require: docs/spec.md has no section "Q"`},
		"an ID that is twice":  {spec: exampleSpec + "| E1 | M | Again. |\n", want: "docs/spec.md: E1 stands there twice"},
		"a level of its own":   {spec: "| E1 | X | Text. |\n", want: `docs/spec.md: E1: level "X" is none of M, S, O`},
		"a text without lines": {spec: "# Spec\n", want: "docs/spec.md: no line of the form | E1 | M | text |"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write(t, root, "docs/spec.md", tc.spec)
			err := run([]string{"-root", root, "-require", tc.require}, &strings.Builder{})
			if err == nil || err.Error() != tc.want {
				t.Errorf("error = %v, want %s", err, tc.want)
			}
		})
	}
}

// The repository's own specification has every section, with the number of lines it is known to have.
func TestOwnSpec(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "spec.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := parseSpec(string(text))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, l := range lines {
		got[l.section()]++
	}
	for section, want := range map[string]int{"E": 9, "C": 7, "R": 8, "I": 8, "D": 9, "N": 9, "K": 3} {
		if got[section] != want {
			t.Errorf("section %s has %d lines, want %d", section, got[section], want)
		}
	}
}

func write(t *testing.T, root, file, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(file))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
