// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// platform is what a program is built for, in Go's words, which are those of images as well.
type platform struct{ os, arch string }

// String returns the platform as Docker writes it, as in linux/arm64.
func (p platform) String() string { return p.os + "/" + p.arch }

// parsePlatform returns the platform that the text names. A Dockerfile's user may ask for any of Linux; Go knows which
// there are.
func parsePlatform(text string) (platform, error) {
	system, arch, ok := strings.Cut(text, "/")
	if !ok || system != "linux" || arch == "" || strings.Contains(arch, "/") {
		return platform{}, fmt.Errorf("-platform=%q: must be linux/ARCH, as in linux/arm64", text)
	}
	return platform{system, arch}, nil
}

// compile returns the image's program for the platform: static, stripped, and the same bytes wherever the sources lie.
// Progress is told on out.
func compile(ctx context.Context, root string, i image, p platform, version string, out io.Writer) ([]byte, error) {
	return goBuild(ctx, root, i.pkg, "-X "+i.versionVariable+"="+version, p, out)
}

// goBuild compiles the package of the module at root. What a builder's environment could change about it is set here: flags,
// tags, instruction sets. The linker gets more flags.
func goBuild(ctx context.Context, root, pkg, linked string, p platform, out io.Writer) ([]byte, error) {
	dir, err := os.MkdirTemp("", "tombolo-images-")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "program")
	command := exec.CommandContext(ctx, "go", "build", "-v", "-trimpath", "-buildvcs=false",
		"-ldflags="+strings.TrimSpace("-s -w "+linked), "-o", file, pkg)
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch,
		"GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT=", "GOFIPS140=off", "GOAMD64=v1", "GOARM64=v8.0")
	content, err := outputOf(command, file, out)
	if err != nil {
		err = fmt.Errorf("go build %s for %s in %s: %w", pkg, p, root, err)
	}
	return content, errors.Join(err, os.RemoveAll(dir))
}

// outputOf runs go build -v and returns the file that it makes. The error holds what the compiler says.
func outputOf(command *exec.Cmd, file string, out io.Writer) ([]byte, error) {
	stderr, err := command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	said, err := follow(stderr, out)
	if err := errors.Join(err, command.Wait()); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, said)
	}
	return os.ReadFile(file)
}

// follow reads what go build -v says: the packages that it compiles, one a line, of which every hundredth is told on out,
// and complaints, which are returned. No package's name has a space, and every complaint has one.
func follow(said io.Reader, out io.Writer) (string, error) {
	var complaints strings.Builder
	lines, packages := bufio.NewReader(said), 0
	for {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, " ") {
			complaints.WriteString(line)
		} else if line != "" {
			packages++
			if packages%100 == 0 {
				fmt.Fprintf(out, "%d packages ... ", packages)
			}
		}
		if errors.Is(err, io.EOF) {
			return complaints.String(), nil
		}
		if err != nil {
			return complaints.String(), err
		}
	}
}
