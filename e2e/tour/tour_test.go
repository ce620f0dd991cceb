// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tour_test takes the README's tour as a reader would: it runs the commands word for word, in one shell, and
// compares what they print with what the README says they do.
package tour_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// limit is how long the whole tour may take on a busy machine, its programs being built.
const limit = 10 * time.Minute

// step is a block of commands and what the README says they print; an ellipsis stands for anything.
type step struct{ commands, output string }

func TestTour(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	steps := stepsOf(t, string(readme))
	if _, err := os.Stat(filepath.Join(root, "bin", "kubectl")); err != nil {
		t.Fatalf("the tour needs kubectl: run make assets kubectl (%v)", err)
	}

	shell := newShell(t, root)
	for _, s := range steps {
		got := shell.run(t, s.commands)
		if s.output != "" && !matches(s.output, got) {
			t.Fatalf("$ %s\nprinted:\n%s\nbut the README says:\n%s", s.commands, got, s.output)
		}
	}
	if len(steps) < 5 {
		t.Errorf("the tour has %d steps only", len(steps))
	}
}

// stepsOf returns the steps of the README's tour.
func stepsOf(t *testing.T, readme string) []step {
	t.Helper()
	_, tour, ok := strings.Cut(readme, "## A tour in five minutes\n")
	if !ok {
		t.Fatal("the README has no tour")
	}
	tour, _, _ = strings.Cut(tour, "\n## ")
	var steps []step
	fence := regexp.MustCompile("(?ms)^```(sh|text)\n(.*?)^```$") //nolint:gocritic // (?m) is what makes ^ mean a line's begin
	for _, block := range fence.FindAllStringSubmatch(tour, -1) {
		switch {
		case block[1] == "sh":
			steps = append(steps, step{commands: block[2]})
		case len(steps) == 0:
			t.Fatal("the tour shows output before any command")
		default:
			steps[len(steps)-1].output = block[2]
		}
	}
	return steps
}

// shell is a bash that lives as long as the tour: what one step sets, the next has.
type shell struct {
	input  *os.File
	output *os.File
}

// newShell returns a shell in the repository's root, with a home of its own for the demo, whose end it sees to.
func newShell(t *testing.T, root string) *shell {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail")
	cmd.Dir = root
	goCache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir(), "GOCACHE="+strings.TrimSpace(string(goCache)), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
	input, toShell, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromShell, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		down := exec.Command("make", "-s", "demo-down")
		down.Dir, down.Env = cmd.Dir, cmd.Env
		if text, err := down.CombinedOutput(); err != nil {
			t.Errorf("make demo-down: %v\n%s", err, text)
		}
		cancel()
		_ = toShell.Close()
		_ = cmd.Wait() // it ends with its input, or was killed
	})
	_ = input.Close()
	_ = output.Close()
	return &shell{input: toShell, output: fromShell}
}

// mark ends the output of a step.
const mark = "--- this step is done ---\n"

// run runs commands and returns what they print. A command that fails ends the test.
func (s *shell) run(t *testing.T, commands string) string {
	t.Helper()
	if _, err := s.input.WriteString(commands + "\necho -n '" + mark + "'\n"); err != nil {
		t.Fatalf("$ %s\n%v", commands, err)
	}
	var printed bytes.Buffer
	buffer := make([]byte, 4096)
	for !strings.HasSuffix(printed.String(), mark) {
		n, err := s.output.Read(buffer)
		printed.Write(buffer[:n])
		if err != nil {
			t.Fatalf("$ %s\nfailed:\n%s", commands, printed.String())
		}
	}
	return strings.TrimSuffix(printed.String(), mark)
}

// matches reports whether text is what the README shows, white space aside.
func matches(shown, text string) bool {
	var pattern strings.Builder
	for i, part := range strings.Split(strings.Join(strings.Fields(shown), " "), "…") {
		if i > 0 {
			pattern.WriteString(".*")
		}
		pattern.WriteString(regexp.QuoteMeta(part))
	}
	return regexp.MustCompile("^(?s:" + pattern.String() + ")$").MatchString(strings.Join(strings.Fields(text), " "))
}

func TestMatches(t *testing.T) {
	for name, test := range map[string]struct {
		shown, text string
		want        bool
	}{
		"the same":             {"a b", "a b", true},
		"other white space":    {"a\n b", "a   b\n", true},
		"an ellipsis":          {"ip … port 80", "ip 10.0.0.1 port 80", true},
		"something else":       {"a b", "a c", false},
		"something more":       {"a", "a b", false},
		"not a pattern":        {"a.c", "abc", false},
		"a wrong end":          {"ip … port 80", "ip 10.0.0.1 port 81", false},
		"an ellipsis, no more": {"…", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := matches(test.shown, test.text); got != test.want {
				t.Errorf("matches(%q, %q) = %v", test.shown, test.text, got)
			}
		})
	}
}
