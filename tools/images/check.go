// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// check verifies the archives in dir, then builds them again from a copy of the sources in another folder and compares.
func (p project) check(ctx context.Context, dir string, g given, out io.Writer) error {
	r, err := releaseOf(ctx, p.root, g)
	if err != nil {
		return err
	}
	copied, err := os.MkdirTemp("", "tombolo-sources-")
	if err != nil {
		return err
	}
	err = copySources(ctx, p.root, copied)
	if err == nil {
		again := p
		again.root = copied
		err = p.checkAll(ctx, dir, r, out, again)
	}
	return errors.Join(err, os.RemoveAll(copied))
}

// checkAll checks every archive; again is the same project in another folder.
func (p project) checkAll(ctx context.Context, dir string, r release, out io.Writer, again project) error {
	for _, i := range p.images {
		name := archiveName(dir, i)
		content, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("%w: build the archives first", err)
		}
		if err := verify(content, i, r, p.platforms); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		second, err := again.archive(ctx, i, r, out)
		if err != nil {
			return err
		}
		if !bytes.Equal(content, second) {
			return fmt.Errorf("%s: a second build differs%s", name, difference(content, second))
		}
		fmt.Fprintf(out, "%s: verified; a second build gives the same bytes\n", name)
	}
	return nil
}

// difference tells where two archives part, for the reader of the error.
func difference(a, b []byte) string {
	for n := range min(len(a), len(b)) {
		if a[n] != b[n] {
			return fmt.Sprintf(" from byte %d on (%d and %d bytes)", n, len(a), len(b))
		}
	}
	return fmt.Sprintf(" in length (%d and %d bytes)", len(a), len(b))
}

// copySources copies the files of the module that git knows or would add.
func copySources(ctx context.Context, from, to string) error {
	listed, err := git(ctx, from, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.Trim(listed, "\x00"), "\x00") {
		if err := copyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a regular file. Links (bin, in a second worktree) are no sources, and a file may have been deleted.
func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm())
}
