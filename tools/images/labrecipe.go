// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/opencontainers/image-spec/specs-go/v1"
)

// The recipe of a lab's images: what pods run where there is no registry. They have one platform, the host's own, since
// some are made of its Debian packages.

// labImage is an image that only labs have.
type labImage struct {
	// ref is its full name, and archive that of its file.
	ref, archive string
	config       v1.ImageConfig
	files        func(context.Context, kitchen) ([]file, error)
}

// kitchen is what lab images are made with.
type kitchen struct {
	// root is that of the product's module.
	root string
	host debian
	// out is told progress.
	out io.Writer
	// target is the host's own platform.
	target platform
}

// searchPath is where a shell finds programs.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// labImages returns the images of a lab.
func labImages() []labImage {
	shell := func(config v1.ImageConfig) v1.ImageConfig {
		config.Env, config.WorkingDir = []string{searchPath}, "/"
		return config
	}
	return []labImage{
		{
			ref: "tombolo.example/pause:lab", archive: "pause.tar",
			config: v1.ImageConfig{Entrypoint: []string{"/pause"}, User: user},
			files:  pauseFiles,
		},
		{
			ref: "tombolo.example/probe:lab", archive: "probe.tar",
			config: shell(v1.ImageConfig{Entrypoint: []string{"/probe"}}),
			files:  probeFiles,
		},
		// What the conformance suite of mcs-api runs in its pods: not the originals, but the programs that it calls.
		{
			ref: "docker.io/alpine/socat:1.7.4.4", archive: "socat.tar",
			config: shell(v1.ImageConfig{Entrypoint: []string{"socat"}}),
			files:  toolFiles,
		},
		{
			ref: "docker.io/nicolaka/netshoot:v0.15", archive: "netshoot.tar",
			config: shell(v1.ImageConfig{Cmd: []string{"sh"}}), // the original's is zsh
			files:  toolFiles,
		},
	}
}

func pauseFiles(ctx context.Context, k kitchen) ([]file, error) {
	content, err := goBuild(ctx, filepath.Join(k.root, "tools", "images"), "./pause", "", k.target, k.out)
	return []file{{"/pause", 0o755, content}}, err
}

func probeFiles(ctx context.Context, k kitchen) ([]file, error) {
	content, err := goBuild(ctx, k.root, "./e2e/framework/probe", "", k.target, k.out)
	if err != nil {
		return nil, err
	}
	files, err := k.host.shell(ctx)
	return append(files, file{"/probe", 0o755, content}), err
}

// toolFiles are those of a shell, with Debian's programs in place of busybox' own where both have one. The shell itself is
// dash: that of busybox takes its own nc and nslookup, whatever is in PATH.
func toolFiles(ctx context.Context, k kitchen) ([]file, error) {
	tools, err := k.host.programs(ctx, map[string]string{
		"/bin/sh": "dash", "/usr/bin/socat": "socat", "/usr/bin/nc": "nc.openbsd", "/usr/bin/nslookup": "nslookup",
	})
	if err != nil {
		return nil, err
	}
	shell, err := k.host.shell(ctx)
	if err != nil {
		return nil, err
	}
	theirs := map[string]bool{}
	for _, f := range tools {
		theirs[filepath.Base(f.path)] = true
	}
	for _, f := range shell {
		if f.mode.Type() != fs.ModeSymlink || !theirs[filepath.Base(f.path)] {
			tools = append(tools, f)
		}
	}
	return tools, nil
}

// userFiles are what every image with a shell has: its users, who resolves names, and a place to write.
func userFiles() []file {
	return []file{
		{"/etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")},
		{"/etc/group", 0o644, []byte("root:x:0:\nnogroup:x:65534:\n")},
		{"/etc/nsswitch.conf", 0o644, []byte("hosts: files dns\n")},
		{"/root", fs.ModeDir | 0o700, nil},
		{"/tmp", fs.ModeDir | fs.ModeSticky | 0o777, nil},
	}
}

// title returns what an image's history says of it.
func (i labImage) title() string {
	return fmt.Sprintf("tools/images lab %s", strings.TrimSuffix(i.archive, ".tar"))
}
