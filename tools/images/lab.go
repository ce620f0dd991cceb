// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
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
