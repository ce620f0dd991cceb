// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command mutation runs gremlins, a mutation tester, over packages of the module, and judges what survives. How it
// counts, and what is to be done about a survivor, is written in tools/mutation/README.md.
//
// gremlins v0.6.0 needs three kinds of help:
//
//   - It copies the whole module for every worker, the built binaries included. It is given a copy of the sources only.
//   - It takes exit code 1 of go test for "killed" and 2 for "does not compile", but go test says 1 for both. It finds
//     this program under the name "go" in its PATH (see asGo), which distinguishes the two.
//   - It derives the time limit of a test from how long go test took for coverage, which a warm cache makes tiny. The
//     coefficient is computed here from a test run without cache.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	if filepath.Base(os.Args[0]) == "go" {
		os.Exit(asGo(os.Args[1:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	gremlins string
	known    string
	minimum  float64
	workers  int
	root     string
	packages []string
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("mutation", flag.ContinueOnError)
	flags.StringVar(&o.gremlins, "gremlins", "gremlins", "the gremlins binary")
	flags.StringVar(&o.known, "known", "tools/mutation/README.md", "the survivors that were read")
	flags.Float64Var(&o.minimum, "min", 85, "the efficacy below which the run fails, in percent")
	flags.IntVar(&o.workers, "workers", 2, "mutants tested at the same time")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	o.packages = flags.Args()
	if len(o.packages) == 0 {
		return options{}, errors.New("name the packages to mutate, as in ./internal/merge")
	}
	if o.workers < 1 {
		return options{}, fmt.Errorf("-workers=%d: at least one is needed", o.workers)
	}
	root, err := os.Getwd()
	o.root = root
	return o, err
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	source := filepath.Join(scratch, "src")
	if err := copySources(o.root, source); err != nil {
		return err
	}
	env, err := environment(scratch)
	if err != nil {
		return err
	}

	var mutants []mutant
	for _, name := range o.packages {
		found, err := mutate(ctx, out, o, source, env, strings.TrimPrefix(filepath.ToSlash(filepath.Clean(name)), "./"))
		if err != nil {
			return err
		}
		mutants = append(mutants, found...)
	}
	known, err := os.ReadFile(o.known)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return judge(out, mutants, string(known), o.minimum)
}

// mutate runs gremlins over one package and returns its mutants. A folder without Go files, which the layout names but
// is not written yet, has none.
func mutate(ctx context.Context, out io.Writer, o options, source string, env []string, pkg string) ([]mutant, error) {
	dir := filepath.Join(source, filepath.FromSlash(pkg))
	if files, err := filepath.Glob(filepath.Join(dir, "*.go")); err != nil || len(files) == 0 {
		fmt.Fprintf(out, "== %s: no Go files yet\n", pkg)
		return nil, err
	}
	factor, err := coefficient(ctx, source, pkg)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "== %s\n", pkg)
	report := filepath.Join(source, "mutation.json")
	gremlins, err := filepath.Abs(o.gremlins)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, gremlins, "unleash",
		"--workers", strconv.Itoa(o.workers), "--timeout-coefficient", strconv.Itoa(factor), "--output", report,
		"--exclude-files", `zz_generated.*\.go$|test/[^/]*$`, "--invert-logical", "--invert-loopctrl",
		"--output-statuses", "lcts", filepath.Join(source, filepath.FromSlash(pkg)))
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = source, env, out, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("gremlins in %s: %w", pkg, err)
	}
	text, err := os.ReadFile(report)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // nothing in the package can be mutated
	}
	if err != nil {
		return nil, err
	}
	if err := os.Remove(report); err != nil {
		return nil, err
	}
	return decode(text, source, pkg)
}
