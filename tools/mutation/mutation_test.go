// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	survivor := mutant{
		pkg: "internal/merge", file: "internal/merge/ports.go", line: 7, column: 4, kind: "CONDITIONALS_BOUNDARY", status: lived,
		source: "if a < b {",
	}
	killedMutant := mutant{pkg: "internal/merge", file: "internal/merge/ports.go", line: 9, status: killed}
	slow := mutant{pkg: "internal/plan", file: "internal/plan/plan.go", line: 3, column: 2, kind: "INCREMENT_DECREMENT", status: timedOut, source: "i++"}
	broken := mutant{pkg: "internal/plan", file: "internal/plan/plan.go", line: 4, status: "NOT VIABLE"}
	unreached := mutant{pkg: "internal/plan", file: "internal/plan/plan.go", line: 5, column: 1, kind: "INVERT_LOGICAL", status: notCovered, source: "a && b"}

	cases := map[string]struct {
		mutants []mutant
		known   string
		minimum float64
		want    string
		wantErr error
	}{
		"nothing to mutate": {
			minimum: 85,
			want: `
  package  killed  lived  not covered  timed out  efficacy
    total       0      0            0          0    100.0%
`,
		},
		"a survivor that was read": {
			mutants: []mutant{survivor, killedMutant},
			known:   "## Read\n\n- internal/merge/ports.go CONDITIONALS_BOUNDARY: ``if a < b {`` — equal values are the same\n",
			minimum: 50,
			want: `
         package  killed  lived  not covered  timed out  efficacy
  internal/merge       1      1            0          0     50.0%
           total       1      1            0          0     50.0%

survivors:
  internal/merge/ports.go:7:4: LIVED CONDITIONALS_BOUNDARY
`,
		},
		"time-outs and unreached lines survive, what does not compile is left out": {
			mutants: []mutant{unreached, slow, broken, killedMutant},
			minimum: 85,
			want: `
         package  killed  lived  not covered  timed out  efficacy
   internal/plan       0      0            1          1      0.0%
  internal/merge       1      0            0          0    100.0%
           total       1      0            1          1     33.3%

survivors:
  internal/plan/plan.go:3:2: TIMED OUT INCREMENT_DECREMENT  (unread)
  internal/plan/plan.go:5:1: NOT COVERED INVERT_LOGICAL  (unread)

unread: add a test, or list it in tools/mutation/README.md with the reason:
- internal/plan/plan.go INCREMENT_DECREMENT: ` + "``i++``" + `
- internal/plan/plan.go INVERT_LOGICAL: ` + "``a && b``" + `

efficacy 33.3% is below 85.0%
`,
			wantErr: errEfficacy,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			if err := judge(&out, tc.mutants, tc.known, tc.minimum); !errors.Is(err, tc.wantErr) {
				t.Errorf("error = %v, want %v", err, tc.wantErr)
			}
			if out.String() != tc.want {
				t.Errorf("got:\n%s\nwant:\n%s", out.String(), tc.want)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "internal/plan/plan.go", "package plan\n\n\tif a < b {\n")
	report := `{"files":[{"file_name":"plan.go","mutations":[{"line":3,"column":7,"type":"X","status":"LIVED"}]}]}`
	got, err := decode([]byte(report), root, "internal/plan")
	must(t, err)
	want := []mutant{{
		pkg: "internal/plan", file: "internal/plan/plan.go", line: 3, column: 7, kind: "X", status: lived, source: "if a < b {",
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := decode([]byte("no JSON"), root, "internal/plan"); err == nil {
		t.Error("a broken report is taken")
	}
}

func TestMultiplier(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]int{
		0:                       30000,
		100 * time.Millisecond:  300,
		1500 * time.Millisecond: 20,
		time.Minute:             20,
	} {
		if got := multiplier(took); got != want {
			t.Errorf("multiplier(%s) = %d, want %d", took, got, want)
		}
	}
}

func TestCopySources(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "src")
	for _, file := range []string{
		"go.mod", "pkg/a/a.go", "pkg/a/testdata/x.txtar", "bin/big", "out/log", ".git/HEAD", "tools/lint/go.mod", "pkg/bin/b.go",
	} {
		write(t, from, file, "x")
	}
	must(t, copySources(from, to))
	for file, want := range map[string]bool{
		"go.mod": true, "pkg/a/a.go": true, "pkg/a/testdata/x.txtar": true, "pkg/bin/b.go": true,
		"bin/big": false, "out/log": false, ".git/HEAD": false, "tools/lint/go.mod": false,
	} {
		if _, err := os.Stat(filepath.Join(to, file)); (err == nil) != want {
			t.Errorf("%s copied: %t, want %t", file, err == nil, want)
		}
	}
}

// A mutant that does not compile ends with 2, one that fails its test with 1, one that passes with 0.
func TestAsGo(t *testing.T) {
	command, err := exec.LookPath("go")
	must(t, err)
	t.Setenv(realGo, command)
	for name, tc := range map[string]struct {
		body string
		want int
	}{
		"passes":           {body: "func F() int { return 1 }", want: 0},
		"fails":            {body: "func F() int { return 2 }", want: 1},
		"does not compile": {body: `func F() int { return "1" - "0" }`, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, root, "go.mod", "module example.com/m\n\ngo 1.26.0\n")
			write(t, root, "m.go", "package m\n\n"+tc.body+"\n")
			write(t, root, "m_test.go", "package m\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) {\n\tif F() != 1 {\n\t\tt.Fail()\n\t}\n}\n")
			t.Chdir(root)
			if got := asGo([]string{"test", "-timeout", "1m", "-failfast", "example.com/m"}); got != tc.want {
				t.Errorf("exit code %d, want %d", got, tc.want)
			}
		})
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no package": {want: "name the packages to mutate, as in ./internal/merge"},
		"no workers": {args: []string{"-workers=0", "./internal/merge"}, want: "-workers=0: at least one is needed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := run(t.Context(), tc.args, &strings.Builder{}); err == nil || err.Error() != tc.want {
				t.Errorf("error = %v, want %s", err, tc.want)
			}
		})
	}
}

func write(t *testing.T, root, file, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(file))
	must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
