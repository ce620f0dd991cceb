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

const (
	spec = "# Spec\n| ID | Level | What holds |\n|---|---|---|\n| E1 | M | a |\n| E2 | S | b |\n"
	// E1 in a doc comment and in a body; X9 is in a string.
	test   = "package p\n\n// spec: E1\nfunc TestDoc() {}\n\nfunc TestBody() {\n\t// spec: E1\n\t_ = \"// spec: X9\"\n}\n"
	second = "package p\n\n// spec: E1, E2\nfunc TestSecond() {}\n"
)

func TestRun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spec    string
		files   map[string]string
		want    string
		wantErr string
	}{
		"all are covered": {
			spec: spec, files: map[string]string{"p/p_test.go": test, "s_test.go": second},
			want: "E1  p/p_test.go:3\n    p/p_test.go:7\n    s_test.go:3\nE2  s_test.go:3\n",
		},
		"a gap": {
			spec: spec, files: map[string]string{"p/p_test.go": test},
			want: "E1  p/p_test.go:3\n    p/p_test.go:7\nE2  NO TEST\n", wantErr: errCoverage.Error(),
		},
		"an unknown ID": {
			spec: spec, files: map[string]string{"a_test.go": "package p\n\n// spec: Z4\n", "s_test.go": second},
			want: "E1  s_test.go:3\nE2  s_test.go:3\ndocs/spec.md has no Z4: a_test.go:3\n", wantErr: errCoverage.Error(),
		},
		"built and hidden folders": {
			spec: spec, files: map[string]string{"bin/p_test.go": test, "out/x/p_test.go": test, ".x/s_test.go": second, "p.go": test},
			want: "E1  NO TEST\nE2  NO TEST\n", wantErr: errCoverage.Error(),
		},
		"an ID twice":      {spec: spec + "| E1 | M | Again. |\n", wantErr: "docs/spec.md: E1 is defined twice"},
		"an unknown level": {spec: "| E1 | X | Text. |\n", wantErr: `docs/spec.md: E1: level "X" is none of M, S, O`},
		"no lines":         {spec: "# Spec\n", wantErr: "docs/spec.md: no line of the form | E1 | M | text |"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write(t, root, "docs/spec.md", tc.spec)
			for file, text := range tc.files {
				write(t, root, file, text)
			}
			var out strings.Builder
			got := ""
			if err := run(root, &out); err != nil {
				got = err.Error()
			}
			if got != tc.wantErr || out.String() != tc.want {
				t.Errorf("error %q, want %q; printed:\n%s\nwant:\n%s", got, tc.wantErr, out.String(), tc.want)
			}
		})
	}
}

func write(t *testing.T, root, file, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(file))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}
