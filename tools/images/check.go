// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// check verifies the archives in dir, then builds them again from a copy of the commit in another folder and compares.
func (b builder) check(ctx context.Context, dir string, r release) error {
	copied, err := os.MkdirTemp("", "tombolo-sources-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(copied)
	sources, err := git(ctx, b.root, "archive", "--format=tar", "HEAD")
	if err != nil {
		return err
	}
	if err := unpack(ctx, sources, copied); err != nil {
		return err
	}
	b.root = copied
	for _, i := range b.images(r) {
		name := filepath.Join(dir, i.file())
		content, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("%w: build the archives first", err)
		}
		if err := verify(ctx, content, i, r, b.platforms); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		second, err := i.archive(ctx, r, b.platforms)
		if err != nil {
			return err
		}
		if !bytes.Equal(content, second) {
			return fmt.Errorf("%s: a second build, of what is committed, gives other bytes", name)
		}
		fmt.Fprintf(b.log, "%s: verified; a second build gives the same bytes\n", name)
	}
	return nil
}

// unpack writes the files of a tar archive into a folder.
func unpack(ctx context.Context, archive []byte, to string) error {
	command := exec.CommandContext(ctx, "tar", "-x", "-p", "-f", "-", "-C", to)
	command.Stdin = bytes.NewReader(archive)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("tar: %w\n%s", err, output)
	}
	return nil
}

func git(ctx context.Context, root string, args ...string) ([]byte, error) {
	// A release comes after its candidates, which may be tags of the same commit.
	command := exec.CommandContext(ctx, "git", append([]string{"-c", "versionsort.suffix=-"}, args...)...)
	command.Dir = root
	output, err := command.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return output, nil
}
