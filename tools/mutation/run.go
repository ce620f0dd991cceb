// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// realGo is the variable by which asGo learns where the real go command is.
	realGo = "MUTATION_GO"
	// slack and floor bound a mutant's tests: slack times what the package's tests take, but never less than floor.
	slack = 20
	floor = 30 * time.Second
	// addressSpace bounds the memory of a mutant's tests, in KiB: an endless loop that appends must not take the machine
	// with it. Where ulimit cannot, the time limit alone must do.
	addressSpace = 8 << 20
)

// asGo replaces the go command. "go test" of a package that does not compile ends with 2, so that gremlins counts
// the mutant as not viable; everything else is the real command's answer.
func asGo(args []string) int {
	command := os.Getenv(realGo)
	if len(args) > 0 && args[0] == "test" && !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-cover") }) {
		if code := execute(command, "build", args[len(args)-1]); code != 0 {
			return 2
		}
		limited := fmt.Sprintf(`ulimit -v %d 2>/dev/null || true; exec "$0" "$@"`, addressSpace)
		return execute("/bin/sh", append([]string{"-c", limited, command}, withoutCache(args)...)...)
	}
	code := execute(command, withoutCache(args)...)
	if at := slices.Index(args, "-coverprofile"); code == 0 && at >= 0 && at+1 < len(args) {
		if err := widen(args[at+1]); err != nil {
			fmt.Fprintln(os.Stderr, "mutation:", err)
			return 3
		}
	}
	return code
}

// withoutCache returns the arguments of go test with caching and vet off; a mutant that vet refuses is not killed.
func withoutCache(args []string) []string {
	if len(args) == 0 || args[0] != "test" {
		return args
	}
	return append([]string{"test", "-count=1", "-vet=off"}, args[1:]...)
}

func execute(name string, args ...string) int {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		if code := cmd.ProcessState.ExitCode(); code > 0 {
			return code
		}
		return 3
	}
	return 0
}

// environment returns the environment of gremlins: this program as go, first in the PATH.
func environment(scratch string) ([]string, error) {
	command, err := exec.LookPath("go")
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	bin := filepath.Join(scratch, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return nil, err
	}
	if err := os.Symlink(self, filepath.Join(bin, "go")); err != nil {
		return nil, err
	}
	return append(os.Environ(),
		realGo+"="+command,
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"TMPDIR="+scratch,
		// Same build keys in every copy of the sources; no race detector, which could not live in the address space.
		"GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -trimpath"), "CGO_ENABLED=0"), nil
}

// coefficient returns by what gremlins must multiply the time that the package's tests take with coverage.
func coefficient(ctx context.Context, source, pkg string) (int, error) {
	var took time.Duration
	for range 2 { // the first run compiles
		cmd := exec.CommandContext(ctx, "go", "test", "-trimpath", "-count=1", "-cover", "./"+pkg+"/...")
		cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0")
		start := time.Now()
		if text, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("%s: the tests fail without any mutation: %w\n%s", pkg, err, text)
		}
		took = time.Since(start)
	}
	return multiplier(took), nil
}

func multiplier(took time.Duration) int {
	return max(slack, int(math.Ceil(float64(floor)/float64(max(took, time.Millisecond)))))
}

// copySources copies the module, apart from what is built, what is hidden, and the tools, which are modules of their own.
func copySources(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case strings.HasPrefix(name, ".") || slices.Contains([]string{"bin", "out", "tools"}, name):
		case entry.IsDir():
			err = errors.Join(err, os.CopyFS(filepath.Join(to, name), os.DirFS(filepath.Join(from, name))))
		default:
			text, readErr := os.ReadFile(filepath.Join(from, name))
			err = errors.Join(err, readErr, os.MkdirAll(to, 0o755), os.WriteFile(filepath.Join(to, name), text, 0o600))
		}
	}
	return err
}

// blockStart is where a covered block begins in a coverage profile: "file.go:LINE.COLUMN,LINE.COLUMN STATEMENTS COUNT".
var blockStart = regexp.MustCompile(`(?m)^(.*\.go:\d+)\.\d+(,\d+\.\d+ \d+ [1-9]\d*)$`)

// widen lets every covered block of a profile begin at the first column of its line. The expression of a case clause
// belongs to no block of its own, so gremlins would never mutate what a switch decides on.
func widen(profile string) error {
	text, err := os.ReadFile(profile)
	if err != nil {
		return err
	}
	return os.WriteFile(profile, blockStart.ReplaceAll(text, []byte("$1.1$2")), 0o600)
}
