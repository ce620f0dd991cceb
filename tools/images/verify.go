// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// verify reads the archive of one of the project's images as a runtime does, and returns what is wrong with it.
func verify(ctx context.Context, archive []byte, i image, r release, wanted []v1.Platform) error {
	dir, err := os.MkdirTemp("", "tombolo-images-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := unpack(ctx, archive, dir); err != nil {
		return err
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(validate.Index(top), verifyBlobs(dir)); err != nil {
		return err
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return err
	}
	if len(manifest.Manifests) != 1 || !maps.Equal(manifest.Manifests[0].Annotations, i.names()) {
		return fmt.Errorf("the images are %v, want one, %v; were the sources changed since it was built?", manifest.Manifests, i.names())
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		return err
	}
	if manifest, err = index.IndexManifest(); err != nil {
		return err
	}
	var found []string
	for _, d := range manifest.Manifests {
		found = append(found, d.Platform.String())
		one, err := index.Image(d.Digest)
		if err != nil {
			return err
		}
		if err := verifyImage(one, i, r, *d.Platform); err != nil {
			return fmt.Errorf("%s: %w", d.Platform, err)
		}
	}
	if fmt.Sprint(found) != fmt.Sprint(wanted) {
		return fmt.Errorf("the platforms are %v, want %v", found, wanted)
	}
	return nil
}

// verifyBlobs returns an error unless the name of each blob is its digest, which validate.Index does not compare.
func verifyBlobs(dir string) error {
	blobs, err := filepath.Glob(filepath.Join(dir, "blobs", "sha256", "*"))
	if err != nil {
		return err
	}
	for _, name := range blobs {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(content)); got != filepath.Base(name) {
			return fmt.Errorf("the digest of blob %s is %s", filepath.Base(name), got)
		}
	}
	return nil
}

// verifyImage returns what is wrong with the configuration and the layer of one platform.
func verifyImage(one v1.Image, i image, r release, p v1.Platform) error {
	config, err := one.ConfigFile()
	if err != nil {
		return err
	}
	got, err := json.Marshal(config.Config)
	if err != nil {
		return err
	}
	want, err := json.Marshal(i.config)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) || !config.Created.Equal(r.time) {
		return fmt.Errorf("the configuration is %s of %s, want %s of %s", got, config.Created, want, r.time)
	}
	layers, err := one.Layers()
	if err != nil {
		return err
	}
	if len(layers) != 1 {
		return fmt.Errorf("%d layers, want one", len(layers))
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		return err
	}
	defer content.Close()
	return verifyLayer(content, strings.TrimPrefix(i.config.Entrypoint[0], "/"), r, p)
}

// verifyLayer returns an error unless the layer has these files and no others, owned by root, of the commit's date.
func verifyLayer(layer io.Reader, program string, r release, p v1.Platform) error {
	want := []string{
		"drwxr-xr-x etc/", "-rw-r--r-- etc/group", "-rw-r--r-- etc/passwd", "drwxr-xr-x etc/ssl/", "drwxr-xr-x etc/ssl/certs/",
		"-rw-r--r-- etc/ssl/certs/ca-certificates.crt", "-rwxr-xr-x " + program,
	}
	var got []string
	content := map[string][]byte{}
	for archive := tar.NewReader(layer); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		got = append(got, h.FileInfo().Mode().String()+" "+h.Name)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || !h.ModTime.Equal(r.time) {
			return fmt.Errorf("%s belongs to %d:%d (%s:%s) and is of %s, want root and %s", h.Name, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime.UTC(), r.time)
		}
		if content[h.Name], err = io.ReadAll(archive); err != nil {
			return err
		}
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
	case !bytes.Contains(content[program], []byte(r.version)):
		return fmt.Errorf("%s does not contain its version %s", program, r.version)
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
