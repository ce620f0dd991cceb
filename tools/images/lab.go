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
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"
)

// lab writes the archives of what the pods of a lab run, where there is no registry. They have one platform, that of the host,
// because some are made of its Debian packages.
func (b builder) lab(ctx context.Context, to string) error {
	r := release{version: "lab", revision: "lab", time: time.Unix(0, 0).UTC()}
	images := append(b.labImages("/usr/bin"), b.images(r)...)
	return b.write(ctx, to, r, images, []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}})
}

// searchPath is where a shell finds programs.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// labImages returns the images that only labs have, made of the programs in the folder bin.
func (b builder) labImages(bin string) []image {
	tools := func(ctx context.Context, _ v1.Platform) ([]file, error) { return toolFiles(ctx, bin) }
	shell := v1.Config{Env: []string{searchPath}, WorkingDir: "/"}
	probe, socat, netshoot := shell, shell, shell
	probe.Entrypoint, socat.Entrypoint, netshoot.Cmd = []string{"/probe"}, []string{"socat"}, []string{"sh"}
	return []image{
		{
			ref:    "tombolo.example/pause:lab",
			config: v1.Config{Entrypoint: []string{"/bin/busybox", "sleep", "infinity"}, User: user},
			files:  func(context.Context, v1.Platform) ([]file, error) { return busybox(bin) },
		},
		{ref: "tombolo.example/probe:lab", config: probe, files: func(ctx context.Context, p v1.Platform) ([]file, error) {
			content, err := b.compile(ctx, "./e2e/framework/probe", "", p)
			if err != nil {
				return nil, err
			}
			files, err := shellFiles(ctx, bin)
			return append(files, regular("probe", 0o755, content)), err
		}},
		{ref: "tombolo.example/etcd:lab", config: v1.Config{Entrypoint: []string{"/etcd"}, WorkingDir: "/"}, files: func(context.Context, v1.Platform) ([]file, error) {
			content, err := os.ReadFile(filepath.Join(b.root, "bin", "etcd"))
			if err != nil {
				return nil, fmt.Errorf("%w: run make assets", err)
			}
			return []file{regular("etcd", 0o755, content)}, nil
		}},
		// Replacements for what the conformance suite of mcs-api runs in its pods: the programs that it calls.
		{ref: "docker.io/alpine/socat:1.7.4.4", config: socat, files: tools},
		{ref: "docker.io/nicolaka/netshoot:v0.15", config: netshoot, files: tools},
	}
}

// toolFiles returns those of a shell, with Debian's programs instead of those of busybox that have the same name. The shell
// itself is dash: that of busybox runs its own nc and nslookup, whatever is in PATH.
func toolFiles(ctx context.Context, bin string) ([]file, error) {
	tools, err := dynamic(ctx, bin, map[string]string{
		"bin/sh": "dash", "usr/bin/socat": "socat", "usr/bin/nc": "nc.openbsd", "usr/bin/nslookup": "nslookup",
	})
	if err != nil {
		return nil, err
	}
	shell, err := shellFiles(ctx, bin)
	shell = slices.DeleteFunc(shell, func(f file) bool {
		return f.Typeflag == tar.TypeSymlink && slices.ContainsFunc(tools, func(t file) bool { return path.Base(t.Name) == path.Base(f.Name) })
	})
	return append(tools, shell...), err
}

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
