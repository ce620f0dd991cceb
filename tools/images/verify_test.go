// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func someRelease() release { return release{version: "v1.2.3", revision: "abc", time: commitTime} }

// tinyFiles returns the files of the tiny image for each platform, compiled once for all tests.
var tinyFiles = sync.OnceValues(func() (map[string][]file, error) {
	b := tiny(filepath.Join("testdata", "tiny"), io.Discard)
	all := map[string][]file{}
	for _, p := range b.platforms {
		files, err := b.images(someRelease())[0].files(context.Background(), p)
		if err != nil {
			return nil, err
		}
		all[p.String()] = files
	}
	return all, nil
})

// TestVerify: the files of an image are compared with what is wanted, and each difference is found.
func TestVerify(t *testing.T) {
	t.Parallel()
	replaced := func(from, to string) func(*file) {
		return func(f *file) {
			if !bytes.Contains(f.content, []byte(from)) {
				t.Errorf("%s does not contain %q", f.Name, from)
			}
			f.content = bytes.ReplaceAll(f.content, []byte(from), []byte(to))
		}
	}
	all, err := tinyFiles()
	must(t, err)
	for name, test := range map[string]struct {
		file   string
		change func(*file)
		want   string
	}{
		"good":               {"tiny", func(*file) {}, ""},
		"for others":         {"tiny", func(f *file) { f.content = all["linux/arm64"][3].content }, "tiny: it is for EM_AARCH64, want EM_X86_64"},
		"another file":       {"etc/group", func(f *file) { f.Name = "etc/shadow" }, `the files are ["-rw-r--r-- etc/passwd" "-rw-r--r-- etc/shadow" `},
		"setuid":             {"tiny", func(f *file) { f.Mode = 0o4755 }, `"urwxr-xr-x tiny"], want [`},
		"no user":            {"etc/passwd", replaced("nologin", "login"), `the users are "nonroot:x:65532:65532:nonroot:/:/sbin/login\n" and `},
		"a certificate less": {"etc/ssl/certs/ca-certificates.crt", func(f *file) { _, f.content = pem.Decode(f.content) }, "the certificates are not those that Mozilla trusts"},
		"no program":         {"tiny", func(f *file) { f.content = []byte("#!/bin/sh v1.2.3") }, "tiny: bad magic number"},
		"another version":    {"tiny", replaced("v1.2.3", "v1.2.4"), "tiny does not contain its version v1.2.3"},
		"symbols":            {"tiny", replaced(".typelink\x00", ".symtab\x00\x00\x00"), "tiny: it has a section .symtab: it is not stripped"},
		"an interpreter": {"tiny", func(f *file) {
			f.content = slices.Clone(f.content)
			binary.LittleEndian.PutUint32(f.content[binary.LittleEndian.Uint64(f.content[32:]):], 3) // the type of the first segment: PT_INTERP
		}, "tiny: it has a segment PT_INTERP: it is not static"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := slices.Clone(all["linux/amd64"])
			test.change(&files[slices.IndexFunc(files, func(f file) bool { return f.Name == test.file })])
			wantError(t, verifyFiles(files, "tiny", "v1.2.3", v1.Platform{OS: "linux", Architecture: "amd64"}), test.want)
		})
	}
}

// load returns the name and the images, by platform, that a runtime finds in an archive.
func load(t *testing.T, archive []byte) (string, map[string]v1.Image) {
	t.Helper()
	dir := t.TempDir()
	must(t, unpack(t.Context(), archive, dir))
	top, err := layout.ImageIndexFromPath(dir)
	must(t, err)
	must(t, validate.Index(top))
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	must(t, err)
	platforms, err := index.IndexManifest()
	must(t, err)
	all := map[string]v1.Image{}
	for _, one := range platforms.Manifests {
		all[one.Platform.String()], err = index.Image(one.Digest)
		must(t, err)
	}
	return manifest.Manifests[0].Annotations[containerdName], all
}

// TestArchive: what a runtime finds in an archive: an image for each platform, whose files belong to root and are of the commit's date.
func TestArchive(t *testing.T) {
	t.Parallel()
	b := tiny("", io.Discard)
	i := b.images(someRelease())[0]
	i.files = func(_ context.Context, p v1.Platform) ([]file, error) {
		all, err := tinyFiles()
		return all[p.String()], err
	}
	archive, err := i.archive(t.Context(), someRelease(), b.platforms)
	must(t, err)
	name, images := load(t, archive)
	if name != "example.com/team/tiny:v1.2.3" || len(images) != 2 {
		t.Errorf("%s for %v", name, images)
	}
	for _, p := range b.platforms {
		config, err := images[p.String()].ConfigFile()
		must(t, err)
		text, err := json.Marshal(config.Config)
		must(t, err)
		for _, want := range []string{`"Entrypoint":["/tiny"]`, `"User":"65532:65532"`, `"org.opencontainers.image.revision":"abc"`, `"1053/udp":{}`, `"WorkingDir":"/"`} {
			if !strings.Contains(string(text), want) || !config.Created.Equal(commitTime) || config.Architecture != p.Architecture {
				t.Errorf("the configuration is %s of %s for %s, without %s", text, config.Created, config.Architecture, want)
			}
		}
		layers, err := images[p.String()].Layers()
		must(t, err)
		layer, err := layers[0].Uncompressed()
		must(t, err)
		isPacked(t, layer, commitTime.Unix())
	}
}

// isPacked checks the files of a layer of the tiny image.
func isPacked(t *testing.T, layer io.Reader, date int64) {
	t.Helper()
	want := "etc/ etc/ssl/ etc/ssl/certs/ etc/group etc/passwd etc/ssl/certs/ca-certificates.crt tiny"
	var got []string
	for archive := tar.NewReader(layer); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		got = append(got, h.Name)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.ModTime.Unix() != date {
			t.Errorf("%s belongs to %d:%d (%s:%s) and is of %s", h.Name, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime.UTC())
		}
	}
	if strings.Join(got, " ") != want {
		t.Errorf("the files are %q, want %s", got, want)
	}
}

// TestCertificates: the file has the roots that Mozilla trusts, which are more than a hundred, and only authorities.
func TestCertificates(t *testing.T) {
	t.Parallel()
	count := 0
	for block, rest := pem.Decode(certificates()); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err != nil || !c.IsCA {
			t.Errorf("certificate %d is no authority, %v", count, err)
		}
		count++
	}
	if count < 100 {
		t.Errorf("%d authorities, want 100 or more", count)
	}
}
