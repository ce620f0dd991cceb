// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"io/fs"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go/v1"
)

// parts are what an archive of the tiny image is written from; a test changes one of them.
type parts struct {
	image    image
	release  release
	programs []program
}

// An archive is verified against what was wanted, and every way in which it may differ is told.
func TestVerify(t *testing.T) {
	t.Parallel()
	good := tinyPrograms(t)
	for name, test := range map[string]struct {
		change func(*parts)
		want   string
	}{
		"good":             {func(*parts) {}, ""},
		"another platform": {func(p *parts) { p.programs = p.programs[:1] }, "platforms [linux/amd64], want [linux/amd64 linux/arm64]"},
		"swapped programs": {func(p *parts) {
			p.programs[0].content, p.programs[1].content = p.programs[1].content, p.programs[0].content
		}, "linux/amd64: tiny: is for EM_AARCH64, want EM_X86_64"},
		"no program": {func(p *parts) { p.programs[1].content = []byte(strings.Repeat("#!/bin/sh\n", 99)) }, "linux/arm64: tiny: bad magic number '[35 33 47 98]' in record at byte 0x0"},
		"a dynamic program": {func(p *parts) {
			p.programs[0].content = withInterpreter(t, p.programs[0].content)
		}, "linux/amd64: tiny: has a segment PT_INTERP: it is not static, and there is no libc"},
		"symbols": {func(p *parts) {
			p.programs[0].content = renamed(t, p.programs[0].content, ".typelink\x00", ".symtab\x00\x00\x00")
		}, "linux/amd64: tiny: has a section .symtab: it is not stripped"},
		"debugging": {func(p *parts) {
			p.programs[0].content = renamed(t, p.programs[0].content, ".typelink\x00", ".debug_xy\x00")
		}, "linux/amd64: tiny: has a section .debug_xy: it is not stripped"},
		"a program of another version": {func(p *parts) {
			p.programs[0].content = renamed(t, p.programs[0].content, "v1.2.3", "v1.2.4")
		}, "linux/amd64: tiny: does not know its version v1.2.3"},
		"another revision": {func(p *parts) { p.release.revision = "cd" }, `linux/amd64: label org.opencontainers.image.revision="cd", want "` + someRelease().revision + `"`},
		"another date": {
			func(p *parts) { p.release.time = p.release.time.AddDate(1, 0, 0) },
			"linux/amd64: created 2027-05-04 03:02:01 +0000 UTC, want 2026-05-04 03:02:01 +0000 UTC, the date of the commit",
		},
		"another port":  {func(p *parts) { p.image.ports = p.image.ports[:1] }, "linux/amd64: ports [1053/udp], want [1053/udp 9153/tcp]"},
		"another title": {func(p *parts) { p.image.title = "" }, `linux/amd64: label org.opencontainers.image.title="", want "Tiny"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := parts{tiny(), someRelease(), slices.Clone(good)}
			test.change(&p)
			content, err := archive(p.image, p.release, "example.com/team", p.programs)
			if err != nil {
				t.Fatal(err)
			}
			wantError(t, verify(content, tiny(), someRelease(), platforms()), test.want)
		})
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// withInterpreter returns the program with one of its segments turned into the name of a dynamic linker.
func withInterpreter(t *testing.T, program []byte) []byte {
	t.Helper()
	changed := slices.Clone(program)
	at := binary.LittleEndian.Uint64(changed[32:]) // e_phoff; the first header's first word is its type
	if len(changed) < int(at)+4 {
		t.Fatal("the program has no segments")
	}
	binary.LittleEndian.PutUint32(changed[at:], 3) // PT_INTERP
	return changed
}

func renamed(t *testing.T, program []byte, from, to string) []byte {
	t.Helper()
	changed := bytes.ReplaceAll(program, []byte(from), []byte(to))
	if bytes.Equal(changed, program) {
		t.Fatalf("the program holds no %q", from)
	}
	return changed
}

// The configuration is what the cluster's policies look at.
func TestVerifyConfig(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*v1.Image)
		want   string
	}{
		"good":           {func(*v1.Image) {}, ""},
		"root":           {func(c *v1.Image) { c.Config.User = "" }, `user "", want 65532:65532`},
		"a shell":        {func(c *v1.Image) { c.Config.Entrypoint = []string{"/bin/sh"} }, `starts ["/bin/sh"] with [], want /tiny`},
		"an argument":    {func(c *v1.Image) { c.Config.Cmd = []string{"-v"} }, `starts ["/tiny"] with ["-v"], want /tiny`},
		"another system": {func(c *v1.Image) { c.OS = "plan9" }, "the configuration is for plan9/amd64"},
		"no date":        {func(c *v1.Image) { c.Created = nil }, "created <nil>, want 2026-05-04 03:02:01 +0000 UTC, the date of the commit"},
		"no labels":      {func(c *v1.Image) { c.Config.Labels = nil }, `label org.opencontainers.image.description="", want "A tiny program"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := configOf(tiny(), someRelease(), platforms()[0], "")
			test.change(&config)
			wantError(t, verifyConfig(config, tiny(), someRelease(), platforms()[0]), test.want)
		})
	}
}

// The layer has the files of the recipe and nothing else.
func TestVerifyLayer(t *testing.T) {
	t.Parallel()
	const names = "etc/ etc/group etc/passwd etc/ssl/ etc/ssl/certs/ etc/ssl/certs/ca-certificates.crt tiny]"
	target := tinyPrograms(t)[0]
	change := func(name string, by func(*file)) func([]file) []file {
		return func(files []file) []file {
			at := slices.IndexFunc(files, func(f file) bool { return f.path == name })
			by(&files[at])
			return files
		}
	}
	for name, test := range map[string]struct {
		change func([]file) []file
		want   string
	}{
		"good":        {func(files []file) []file { return files }, ""},
		"a shell":     {func(files []file) []file { return append(files, file{"/bin/sh", 0o755, nil}) }, "files [bin/ bin/sh " + names + ", want [" + names},
		"a file less": {func(files []file) []file { return files[1:] }, "files [" + strings.Replace(names, "etc/group ", "", 1) + ", want [" + names},
		"writable":    {change("/tiny", func(f *file) { f.mode = 0o777 }), "tiny: mode -rwxrwxrwx, want -rwxr-xr-x"},
		"setuid":      {change("/tiny", func(f *file) { f.mode = fs.FileMode(0o4755) }), "tiny: mode urwxr-xr-x, want -rwxr-xr-x"},
		"a shell for the user": {
			change("/etc/passwd", func(f *file) { f.content = []byte("nonroot:x:65532:65532::/:/bin/sh\n") }),
			`/etc/passwd "nonroot:x:65532:65532::/:/bin/sh\n", want one user, 65532:65532, who cannot log in`,
		},
		"another user": {
			change("/etc/passwd", func(f *file) { f.content = []byte("nonroot:x:0:65532::/:/sbin/nologin\n") }),
			`/etc/passwd "nonroot:x:0:65532::/:/sbin/nologin\n", want one user, 65532:65532, who cannot log in`,
		},
		"another group": {
			change("/etc/group", func(f *file) { f.content = []byte("root:x:0:\n") }),
			`/etc/group "root:x:0:\n", want one group, 65532`,
		},
		"no certificates": {
			change("/etc/ssl/certs/ca-certificates.crt", func(f *file) { f.content = nil }),
			"ca-certificates.crt: 0 authorities, want 100 or more",
		},
		"a certificate of no authority": {
			change("/etc/ssl/certs/ca-certificates.crt", func(f *file) { f.content = append(leaf(t), f.content...) }),
			"ca-certificates.crt: CN=leaf is no authority",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content, err := layer(test.change(filesOf(tiny(), target.content)), someRelease().time)
			if err != nil {
				t.Fatal(err)
			}
			wantError(t, verifyLayer(content, tiny(), someRelease(), target.platform), test.want)
		})
	}
}

// leaf returns a certificate that may sign none.
func leaf(t *testing.T) []byte {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "leaf"}}
	content, err := x509.CreateCertificate(nil, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: content})
}

// The configuration and the manifest speak of the same one layer.
func TestVerifyImage(t *testing.T) {
	t.Parallel()
	target, r := tinyPrograms(t)[0], someRelease()
	content, err := layer(filesOf(tiny(), target.content), r.time)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := compress(content)
	if err != nil {
		t.Fatal(err)
	}
	is, other := digest.FromBytes(content), digest.FromString("other")
	for name, test := range map[string]struct {
		change func(*v1.Manifest, *v1.Image)
		want   string
	}{
		"good":          {func(*v1.Manifest, *v1.Image) {}, ""},
		"another layer": {func(_ *v1.Manifest, c *v1.Image) { c.RootFS.DiffIDs[0] = other }, "the layer is " + is.String() + ", not " + other.String() + " as the configuration says"},
		"no layer":      {func(m *v1.Manifest, _ *v1.Image) { m.Layers = nil }, "0 layers, 1 of them in the configuration, want one"},
		"two layers":    {func(m *v1.Manifest, _ *v1.Image) { m.Layers = append(m.Layers, m.Layers[0]) }, "2 layers, 1 of them in the configuration, want one"},
		"two in the configuration": {
			func(_ *v1.Manifest, c *v1.Image) { c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, other) },
			"1 layers, 2 of them in the configuration, want one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := store{}
			config := configOf(tiny(), r, target.platform, is)
			manifest := v1.Manifest{Layers: []v1.Descriptor{all.add(v1.MediaTypeImageLayerGzip, packed)}}
			test.change(&manifest, &config)
			var err error
			if manifest.Config, err = all.addJSON(v1.MediaTypeImageConfig, config); err != nil {
				t.Fatal(err)
			}
			descriptor, err := all.addJSON(v1.MediaTypeImageManifest, manifest)
			if err != nil {
				t.Fatal(err)
			}
			layout := reader{entries: map[string]entry{}, used: map[digest.Digest]bool{}}
			for d, blob := range all {
				layout.entries[blobName(d)] = entry{content: blob}
			}
			wantError(t, layout.image(descriptor, tiny(), r, target.platform), test.want)
		})
	}
}

// The envelope: what was changed after it was written is found by its digest.
func TestVerifyArchive(t *testing.T) {
	t.Parallel()
	content, err := archive(tiny(), someRelease(), "example.com/team", tinyPrograms(t))
	if err != nil {
		t.Fatal(err)
	}
	index := indexOf(t, content)
	blob := blobName(index.Digest)
	other := digest.FromString("other")
	for name, test := range map[string]struct {
		change func(map[string][]byte)
		want   string
	}{
		"good":            {func(map[string][]byte) {}, ""},
		"no layout":       {func(f map[string][]byte) { delete(f, "oci-layout") }, "there is no oci-layout"},
		"another layout":  {func(f map[string][]byte) { f["oci-layout"] = []byte(`{"imageLayoutVersion":"2"}`) }, `oci-layout: version "2", want 1.0.0`},
		"no index":        {func(f map[string][]byte) { delete(f, "index.json") }, "there is no index.json"},
		"an empty index":  {func(f map[string][]byte) { f["index.json"] = []byte(`{"schemaVersion":2,"manifests":[]}`) }, "index.json: 0 images, want one index: skopeo and podman take no other"},
		"a broken index":  {func(f map[string][]byte) { f["index.json"] = []byte("{") }, "index.json: unexpected EOF"},
		"a strange field": {func(f map[string][]byte) { f["oci-layout"] = []byte(`{"a":1}`) }, `oci-layout: json: unknown field "a"`},
		"no blob":         {func(f map[string][]byte) { delete(f, blob) }, "there is no blob " + index.Digest.String()},
		"a longer blob":   {func(f map[string][]byte) { f[blob] = append(f[blob], ' ') }, "blob " + index.Digest.String() + " has " + number(index.Size+1) + " bytes, not " + number(index.Size)},
		"a changed blob": {func(f map[string][]byte) {
			f[blob] = bytes.Replace(f[blob], []byte("Tiny"), []byte("Tony"), 1)
		}, "blob " + index.Digest.String() + " is " + digest.FromBytes(bytes.Replace(entriesOf(t, content)[blob].content, []byte("Tiny"), []byte("Tony"), 1)).String()},
		"a blob too many": {func(f map[string][]byte) { f[blobName(other)] = []byte("other") }, "nothing names " + blobName(other)},
		"another kind": {func(f map[string][]byte) {
			f["index.json"] = bytes.Replace(f["index.json"], []byte(`"mediaType":"application/vnd.oci.image.index.v1+json","digest"`), []byte(`"mediaType":"text/plain","digest"`), 1)
		}, index.Digest.String() + ` is "text/plain", want application/vnd.oci.image.index.v1+json`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string][]byte{}
			for name, e := range entriesOf(t, content) {
				if !strings.HasSuffix(name, "/") {
					files[name] = slices.Clone(e.content)
				}
			}
			test.change(files)
			wantError(t, verify(packed(t, files), tiny(), someRelease(), platforms()), test.want)
		})
	}
}

func number(n int64) string {
	text, _ := json.Marshal(n)
	return string(text)
}

func indexOf(t *testing.T, archive []byte) v1.Descriptor {
	t.Helper()
	var top v1.Index
	if err := json.Unmarshal(entriesOf(t, archive)["index.json"].content, &top); err != nil {
		t.Fatal(err)
	}
	return top.Manifests[0]
}

func packed(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var all []file
	for _, name := range slices.Sorted(maps.Keys(files)) {
		all = append(all, file{"/" + name, 0o644, files[name]})
	}
	content, err := layer(all, someRelease().time)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// A name that is in an archive twice would hide the first.
func TestReadTarTwice(t *testing.T) {
	t.Parallel()
	content, err := layer([]file{{"/a", 0o644, nil}, {"/a", 0o644, nil}}, someRelease().time)
	if err != nil {
		t.Fatal(err)
	}
	_, err = readTar(bytes.NewReader(content))
	wantError(t, err, "a is there twice")
}
