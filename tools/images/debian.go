// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// explain returns the error of a host that lacks a program.
func explain(err error) error {
	return fmt.Errorf("%w: the images of a lab are made of Debian's programs: apt-get install busybox-static socat netcat-openbsd bind9-dnsutils", err)
}

// busybox returns the program of that name.
func busybox(bin string) ([]file, error) {
	name := filepath.Join(bin, "busybox")
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, explain(err)
	}
	f, err := elf.NewFile(bytes.NewReader(content))
	if err == nil {
		err = static(f)
	}
	if err != nil {
		return nil, explain(fmt.Errorf("%s: %w", name, err))
	}
	return []file{regular("bin/busybox", 0o755, content)}, nil
}

// shellFiles returns busybox with a link for each of its programs, users, the order in which names are resolved, and a
// folder to write to.
func shellFiles(ctx context.Context, bin string) ([]file, error) {
	files, err := busybox(bin)
	if err != nil {
		return nil, err
	}
	listed, err := exec.CommandContext(ctx, filepath.Join(bin, "busybox"), "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("busybox --list: %w", err)
	}
	for applet := range strings.FieldsSeq(string(listed)) {
		if applet != "busybox" {
			files = append(files, file{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet, Mode: 0o777, Linkname: "busybox"}})
		}
	}
	return append(files,
		regular("etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")),
		regular("etc/group", 0o644, []byte("root:x:0:\nnogroup:x:65534:\n")),
		regular("etc/nsswitch.conf", 0o644, []byte("hosts: files dns\n")),
		file{Header: tar.Header{Typeflag: tar.TypeDir, Name: "root/", Mode: 0o700}},
		file{Header: tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}},
	), nil
}

// library is a line of ldd with the path of a library: "libc.so.6 => /lib/libc.so.6 (0x2)" or "/lib64/ld.so.2 (0x3)".
var library = regexp.MustCompile(`(?m)(?:=> |^\t)/(\S+) \(0x`)

// dynamic returns programs of the host by their names in the image, with the libraries that they need.
func dynamic(ctx context.Context, bin string, wanted map[string]string) ([]file, error) {
	sources := map[string]string{}
	for to, program := range wanted {
		sources[to] = filepath.Join(bin, program)
		output, err := exec.CommandContext(ctx, "ldd", sources[to]).Output()
		if err == nil && bytes.Contains(output, []byte("not found")) {
			err = fmt.Errorf("a library is missing\n%s", output)
		}
		if err != nil {
			return nil, explain(fmt.Errorf("ldd %s: %w", sources[to], err))
		}
		for _, found := range library.FindAllStringSubmatch(string(output), -1) {
			sources[filepath.Clean(found[1])] = "/" + found[1]
		}
	}
	var files []file
	for to, from := range sources {
		content, err := os.ReadFile(from)
		if err != nil {
			return nil, explain(err)
		}
		files = append(files, regular(to, 0o755, content))
	}
	return files, nil
}
