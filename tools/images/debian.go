// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// debianPackages are those whose programs are copied into a lab's images.
const debianPackages = "busybox-static socat netcat-openbsd bind9-dnsutils"

// debian is a host that has these packages.
type debian struct {
	// bin is the folder of programs.
	bin string
}

// missing returns the error of a host that lacks a program.
func missing(err error) error {
	return fmt.Errorf("%w: a lab's images are made of Debian's programs: apt-get install %s", err, debianPackages)
}

// shell returns busybox with a link for each of its programs, and userFiles.
func (d debian) shell(ctx context.Context) ([]file, error) {
	name := filepath.Join(d.bin, "busybox")
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, missing(err)
	}
	if err := static(content); err != nil {
		return nil, missing(fmt.Errorf("%s: %w", name, err))
	}
	listed, err := exec.CommandContext(ctx, name, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --list: %w", name, err)
	}
	files := append(userFiles(), file{"/bin/busybox", 0o755, content})
	for applet := range strings.FieldsSeq(string(listed)) {
		if applet != "busybox" {
			files = append(files, file{"/bin/" + applet, fs.ModeSymlink | 0o777, []byte("busybox")})
		}
	}
	return files, nil
}

// static returns an error where a program needs a loader.
func static(content []byte) error {
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return err
	}
	for _, segment := range f.Progs {
		if segment.Type == elf.PT_INTERP {
			return errors.New("is not static")
		}
	}
	return nil
}

// programs returns the host's programs, each at its path in the image, with the libraries that they need.
func (d debian) programs(ctx context.Context, wanted map[string]string) ([]file, error) {
	var files []file
	libraries := map[string]bool{}
	for _, to := range slices.Sorted(maps.Keys(wanted)) {
		name := filepath.Join(d.bin, wanted[to])
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, missing(err)
		}
		files = append(files, file{to, 0o755, content})
		said, err := exec.CommandContext(ctx, "ldd", name).Output()
		if err != nil {
			return nil, fmt.Errorf("ldd %s: %w", name, err)
		}
		needed, err := librariesOf(string(said))
		if err != nil {
			return nil, missing(fmt.Errorf("ldd %s: %w", name, err))
		}
		for _, library := range needed {
			libraries[library] = true
		}
	}
	for _, library := range slices.Sorted(maps.Keys(libraries)) {
		content, err := os.ReadFile(library)
		if err != nil {
			return nil, err
		}
		files = append(files, file{library, 0o755, content})
	}
	return files, nil
}

// librariesOf returns the files that ldd names; those that the kernel provides are none.
func librariesOf(said string) ([]string, error) {
	var found []string
	for line := range strings.Lines(said) {
		needed, at, linked := strings.Cut(strings.TrimSpace(line), " => ")
		if !linked {
			at = needed
		}
		// What follows is the address in memory, and no part of the path.
		at, _, _ = strings.Cut(at, " (")
		switch {
		case at == "not found":
			return nil, fmt.Errorf("%s is not found", needed)
		case filepath.IsAbs(at):
			found = append(found, filepath.Clean(at))
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
