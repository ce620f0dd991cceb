// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1"
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

// tinyImage returns the tiny image, whose files a test may change by their names.
func tinyImage(t *testing.T, change map[string]func(*file)) image {
	t.Helper()
	all, err := tinyFiles()
	must(t, err)
	i := tiny("", io.Discard).images(someRelease())[0]
	i.files = func(_ context.Context, p v1.Platform) ([]file, error) {
		files := slices.Clone(all[p.String()])
		for n := range files {
			if by, ok := change[files[n].Name]; ok {
				by(&files[n])
				files[n].Size = int64(len(files[n].content))
			}
		}
		return files, nil
	}
	return i
}

// replaced returns a change of the content of a file. The content must have the old text.
func replaced(t *testing.T, from, to string) func(*file) {
	t.Helper()
	return func(f *file) {
		if !bytes.Contains(f.content, []byte(from)) {
			t.Errorf("%s does not contain %q", f.Name, from)
		}
		f.content = bytes.ReplaceAll(f.content, []byte(from), []byte(to))
	}
}

// TestVerify: an archive is compared with what is wanted, and each difference is found.
func TestVerify(t *testing.T) {
	t.Parallel()
	amd64, arm64 := v1.Platform{OS: "linux", Architecture: "amd64"}, v1.Platform{OS: "linux", Architecture: "arm64"}
	type parts struct {
		image     image
		release   release
		platforms []v1.Platform
		archive   func([]byte) []byte
	}
	change := func(name string, by func(*file)) func(*parts) {
		return func(p *parts) { p.image = tinyImage(t, map[string]func(*file){name: by}) }
	}
	for name, test := range map[string]struct {
		change func(*parts)
		want   string
	}{
		"good":             {func(*parts) {}, ""},
		"another platform": {func(p *parts) { p.platforms = p.platforms[:1] }, "the platforms are [linux/amd64], want [linux/amd64 linux/arm64]"},
		"another name":     {func(p *parts) { p.image.ref = "example.com/team/other:v1.2.3" }, "were the sources changed since it was built?"},
		"another tag":      {func(p *parts) { p.image.ref = "example.com/team/tiny:v1" }, "were the sources changed since it was built?"},
		"root":             {func(p *parts) { p.image.config.User = "" }, `linux/amd64: the configuration is {"`},
		"a shell":          {func(p *parts) { p.image.config.Entrypoint = []string{"/bin/sh"} }, `linux/amd64: the configuration is {"`},
		"another label":    {func(p *parts) { p.image.config.Labels = nil }, `linux/amd64: the configuration is {"`},
		"another date":     {func(p *parts) { p.release.time = commitTime.AddDate(1, 0, 0) }, "of 2027-05-04 03:02:01 +0000 UTC, want {"},
		"a changed blob": {func(p *parts) {
			p.archive = func(a []byte) []byte { return bytes.ReplaceAll(a, []byte("Tiny"), []byte("Tony")) }
		}, "the digest of blob "},
		"swapped programs": {func(p *parts) {
			files := p.image.files
			p.image.files = func(ctx context.Context, _ v1.Platform) ([]file, error) { return files(ctx, arm64) }
		}, "linux/amd64: tiny: it is for EM_AARCH64, want EM_X86_64"},
		"another file":       {change("etc/group", func(f *file) { f.Name = "etc/shadow" }), `linux/amd64: the files are ["-rw-r--r-- etc/passwd" "-rw-r--r-- etc/shadow" `},
		"setuid":             {change("tiny", func(f *file) { f.Mode = 0o4755 }), `"urwxr-xr-x tiny"], want [`},
		"another owner":      {change("tiny", func(f *file) { f.Uid = 1 }), "tiny belongs to 1:0 (:) and is of 2026-05-04 03:02:01 +0000 UTC, want root and "},
		"no user":            {change("etc/passwd", replaced(t, "nologin", "login")), `the users are "nonroot:x:65532:65532:nonroot:/:/sbin/login\n" and `},
		"a certificate less": {change("etc/ssl/certs/ca-certificates.crt", func(f *file) { _, f.content = pem.Decode(f.content) }), "the certificates are not those that Mozilla trusts"},
		"no program":         {change("tiny", func(f *file) { f.content = []byte("#!/bin/sh v1.2.3") }), "linux/amd64: tiny: bad magic number"},
		"another version":    {change("tiny", replaced(t, "v1.2.3", "v1.2.4")), "linux/amd64: tiny does not contain its version v1.2.3"},
		"symbols":            {change("tiny", replaced(t, ".typelink\x00", ".symtab\x00\x00\x00")), "linux/amd64: tiny: it has a section .symtab: it is not stripped"},
		"an interpreter": {change("tiny", func(f *file) {
			f.content = slices.Clone(f.content)
			binary.LittleEndian.PutUint32(f.content[binary.LittleEndian.Uint64(f.content[32:]):], 3) // the type of the first segment: PT_INTERP
		}), "linux/amd64: tiny: it has a segment PT_INTERP: it is not static"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := parts{tinyImage(t, nil), someRelease(), []v1.Platform{amd64, arm64}, slices.Clone[[]byte]}
			test.change(&p)
			archive, err := p.image.archive(t.Context(), p.release, p.platforms)
			must(t, err)
			wantError(t, verify(t.Context(), p.archive(archive), tinyImage(t, nil), someRelease(), []v1.Platform{amd64, arm64}), test.want)
		})
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
