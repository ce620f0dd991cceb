// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package walk follows a document as a reader would: it runs the commands word for word, in one shell, and compares what
// they print with what the document says they do.
package walk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// Step is a block of commands and what the document says they print: nothing, or a text in which an ellipsis matches
// anything.
type Step struct{ Commands, Output string }

// Steps returns those of a document: blocks marked sh, each with the block marked text that may follow it. Blocks with
// other marks are not for running.
func Steps(document string) ([]Step, error) {
	var steps []Step
	fence := regexp.MustCompile("(?ms)^```(sh|text)\n(.*?)^```$") //nolint:gocritic // (?m) is what makes ^ mean a line's begin
	for _, block := range fence.FindAllStringSubmatch(document, -1) {
		switch {
		case block[1] == "sh":
			steps = append(steps, Step{Commands: block[2]})
		case len(steps) == 0:
			return nil, errors.New("the document shows output before any command")
		default:
			steps[len(steps)-1].Output = block[2]
		}
	}
	return steps, nil
}

// Shell is a bash that lives as long as the walk: what one step sets, the next has.
type Shell struct {
	cmd           *exec.Cmd
	input, output *os.File
}

// NewShell returns a shell in a folder, with an environment, that ends with ctx. The caller must Close it.
func NewShell(ctx context.Context, folder string, environment []string) (*Shell, error) {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail")
	cmd.Dir, cmd.Env = folder, environment
	input, toShell, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromShell, output, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, output, output
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_ = input.Close() // the shell has them
	_ = output.Close()
	return &Shell{cmd: cmd, input: toShell, output: fromShell}, nil
}

// Close ends the shell.
func (s *Shell) Close() {
	_ = s.input.Close()
	_ = s.cmd.Wait() // it ends with its input, or was killed
}

// mark ends the output of a step.
const mark = "--- this step is done ---\n"

// Run runs commands and returns what they print. The shell has ended if one of them fails.
func (s *Shell) Run(commands string) (string, error) {
	if _, err := s.input.WriteString(commands + "\necho -n '" + mark + "'\n"); err != nil {
		return "", fmt.Errorf("$ %s\n%w", commands, err)
	}
	var printed bytes.Buffer
	buffer := make([]byte, 4096)
	for !strings.HasSuffix(printed.String(), mark) {
		n, err := s.output.Read(buffer)
		printed.Write(buffer[:n])
		if err != nil {
			return "", fmt.Errorf("$ %s\nfailed:\n%s", commands, printed.String())
		}
	}
	return strings.TrimSuffix(printed.String(), mark), nil
}

// Take runs a step. The error says what the step printed instead of what the document shows.
func (s *Shell) Take(step Step) error {
	got, err := s.Run(step.Commands)
	if err != nil {
		return err
	}
	if step.Output != "" && !Matches(step.Output, got) {
		return fmt.Errorf("$ %s\nprinted:\n%s\nbut the document says:\n%s", step.Commands, got, step.Output)
	}
	return nil
}

// Matches is whether a text is what the document shows, white space aside.
func Matches(shown, text string) bool {
	var pattern strings.Builder
	for i, part := range strings.Split(strings.Join(strings.Fields(shown), " "), "…") {
		if i > 0 {
			pattern.WriteString(".*")
		}
		pattern.WriteString(regexp.QuoteMeta(part))
	}
	return regexp.MustCompile("^(?s:" + pattern.String() + ")$").MatchString(strings.Join(strings.Fields(text), " "))
}
