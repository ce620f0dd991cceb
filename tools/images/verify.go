// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// check builds the archives in dir again, from a copy of the commit in another folder. It verifies the files of the images, and
// compares the bytes of the archives.
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
		for _, p := range b.platforms {
			files, err := i.files(ctx, p)
			if err == nil {
				err = verifyFiles(files, strings.TrimPrefix(i.config.Entrypoint[0], "/"), r.version, p)
			}
			if err != nil {
				return fmt.Errorf("%s: %s: %w", name, p, err)
			}
		}
		second, err := i.archive(ctx, r, b.platforms)
		if err != nil {
			return err
		}
		if !bytes.Equal(content, second) {
			return fmt.Errorf("%s: a second build, %s of what is committed, gives other bytes: were the sources changed since it was built?", name, i.ref)
		}
		fmt.Fprintf(b.log, "%s: verified; a second build gives the same bytes\n", name)
	}
	return nil
}

// verifyFiles returns an error unless an image has these files and no others.
func verifyFiles(files []file, program, version string, p v1.Platform) error {
	want := []string{"-rw-r--r-- etc/group", "-rw-r--r-- etc/passwd", "-rw-r--r-- etc/ssl/certs/ca-certificates.crt", "-rwxr-xr-x " + program}
	var got []string
	content := map[string][]byte{}
	for _, f := range files {
		got = append(got, f.FileInfo().Mode().String()+" "+f.Name)
		content[f.Name] = f.content
	}
	slices.Sort(got)
	slices.Sort(want)
	switch {
	case !slices.Equal(got, want):
		return fmt.Errorf("the files are %q, want %q", got, want)
	case string(content["etc/passwd"]) != passwd || string(content["etc/group"]) != group:
		return fmt.Errorf("the users are %q and the groups %q, want %q and %q", content["etc/passwd"], content["etc/group"], passwd, group)
	case !bytes.Equal(content["etc/ssl/certs/ca-certificates.crt"], certificates()):
		return errors.New("the certificates are not those that Mozilla trusts")
	case !bytes.Contains(content[program], []byte(version)):
		return fmt.Errorf("%s does not contain its version %s", program, version)
	}
	if err := verifyProgram(content[program], p.Architecture); err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}

// verifyProgram returns an error unless the program is for the architecture, static and stripped.
func verifyProgram(content []byte, arch string) error {
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return err
	}
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]; f.Machine != want {
		return fmt.Errorf("it is for %s, want %s", f.Machine, want)
	}
	for _, section := range f.Sections {
		if section.Name == ".symtab" || strings.HasPrefix(section.Name, ".debug_") {
			return fmt.Errorf("it has a section %s: it is not stripped", section.Name)
		}
	}
	return static(f)
}

// static returns an error if the program needs a loader or libraries.
func static(f *elf.File) error {
	for _, segment := range f.Progs {
		if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
			return fmt.Errorf("it has a segment %s: it is not static", segment.Type)
		}
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
