// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tour_test takes the README's tour.
package tour_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/walk"
)

// limit is how long the whole tour may take on a busy machine, on which most of its programs' packages have been compiled:
// "make test" sees to that.
const limit = 10 * time.Minute

func TestTour(t *testing.T) {
	root, err := filepath.Abs("../../..")
	lab.Must(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	lab.Must(t, err)
	_, tour, ok := strings.Cut(string(readme), "## A tour in five minutes\n")
	if !ok {
		t.Fatal("the README has no tour")
	}
	tour, _, _ = strings.Cut(tour, "\n## ")
	steps, err := walk.Steps(tour)
	lab.Must(t, err)
	if len(steps) < 5 {
		t.Errorf("the tour has %d steps only", len(steps))
	}
	if _, err := os.Stat(filepath.Join(root, "bin", "kubectl")); err != nil {
		t.Fatalf("the tour needs kubectl: run make assets kubectl (%v)", err)
	}
	shell := newShell(t, root)
	for _, step := range steps {
		lab.Must(t, shell.Take(step))
	}
}

// newShell returns a shell in the repository's root, with a home of its own for the demo, whose end it sees to.
func newShell(t *testing.T, root string) *walk.Shell {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	goCache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	lab.Must(t, err)
	environment := append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir(), "GOCACHE="+strings.TrimSpace(string(goCache)), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
	shell, err := walk.NewShell(ctx, root, environment)
	lab.Must(t, err)
	t.Cleanup(func() {
		down := exec.Command("make", "-s", "demo-down")
		down.Dir, down.Env = root, environment
		if text, err := down.CombinedOutput(); err != nil {
			t.Errorf("make demo-down: %v\n%s", err, text)
		}
		cancel()
		shell.Close()
	})
	return shell
}
