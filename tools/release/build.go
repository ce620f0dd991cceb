// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/rs/zerolog"
)

const (
	checksums = "checksums.txt"
	license   = "LICENSE"
)

// build makes all files of the release.
func (r release) build(ctx context.Context, all []platform) error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o750); err != nil {
		return err
	}
	sources, err := r.stampedCopy(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(sources)
	r.root = sources
	for _, p := range all {
		fmt.Fprintf(os.Stderr, "%s for %s/%s\n", program, p.os, p.arch)
		if err := r.buildFor(ctx, p); err != nil {
			return fmt.Errorf("%s/%s: %w", p.os, p.arch, err)
		}
	}
	fmt.Fprintln(os.Stderr, "images")
	if err := r.buildImages(ctx); err != nil {
		return err
	}
	if err := errors.Join(r.packCharts(), r.renderInstalls()); err != nil {
		return err
	}
	return r.finish()
}

// finish writes the checksums of all files, and the manifest for krew, which has those of the archives.
func (r release) finish() error {
	sums, err := r.sums()
	if err != nil {
		return err
	}
	if err := r.write(checksums, sums); err != nil {
		return err
	}
	manifest, err := r.krewManifest()
	if err != nil {
		return err
	}
	return r.write(krewFile, manifest)
}

func (r release) write(name, text string) error {
	return os.WriteFile(filepath.Join(r.out, name), []byte(text), 0o644) //nolint:gosec // it is published
}

// buildFor makes the archive for one platform, and its bill of materials.
func (r release) buildFor(ctx context.Context, p platform) error {
	scratch, err := os.MkdirTemp("", "tombolo-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	binary := filepath.Join(scratch, p.binary())
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, "./cmd/"+program)
	build.Dir = r.root
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch)
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, output)
	}
	// From the binary, which knows what it was made of.
	materials, err := billOf(binary, r.version)
	if err != nil {
		return fmt.Errorf("bill of materials: %w", err)
	}
	if err := r.write(p.bill(), string(materials)); err != nil {
		return err
	}
	return r.pack(p.archive(), entry{p.binary(), binary, 0o755}, entry{license, filepath.Join(r.root, license), 0o644})
}

// entry is a file of an archive.
type entry struct {
	name, source string
	mode         int64
}

// pack writes an archive of files, whose bytes depend only on theirs and on the release's time.
func (r release) pack(archive string, entries ...entry) error {
	var result bytes.Buffer
	compressed := gzip.NewWriter(&result)
	contents := tar.NewWriter(compressed)
	for _, e := range entries {
		text, err := os.ReadFile(e.source)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(text)), ModTime: r.time, Format: tar.FormatPAX}
		if err := contents.WriteHeader(header); err != nil {
			return err
		}
		if _, err := contents.Write(text); err != nil {
			return err
		}
	}
	if err := errors.Join(contents.Close(), compressed.Close()); err != nil {
		return err
	}
	return r.write(archive, result.String())
}

// sums returns the checksums of all files, as sha256sum writes them.
func (r release) sums() (string, error) {
	var sums strings.Builder
	files, err := os.ReadDir(r.out)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		sum, err := r.digest(file.Name())
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, file.Name())
	}
	return sums.String(), nil
}

// digest returns the SHA-256 of a file of the release, in hexadecimal digits.
func (r release) digest(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(r.out, name))
	return fmt.Sprintf("%x", sha256.Sum256(text)), err
}

// billOf returns the bill of materials of a binary in CycloneDX: the modules that the binary says it was built from, and the
// standard library.
func billOf(binary, version string) ([]byte, error) {
	generator, err := bin.NewGenerator(binary, bin.WithIncludeStdlib(true), bin.WithVersionOverride(version), bin.WithLogger(zerolog.Nop()))
	if err != nil {
		return nil, err
	}
	bill, err := generator.Generate()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bill)
	return text.Bytes(), err
}
