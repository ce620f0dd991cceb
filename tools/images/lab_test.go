// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go/v1"
)

// labArchives returns a folder with the archives of all lab images.
func labArchives(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("a lab's images are made of Debian's programs")
	}
	for _, name := range []string{"busybox", "socat", "nc.openbsd", "nslookup"} {
		if _, err := os.Stat("/usr/bin/" + name); err != nil {
			t.Skip(missing(err))
		}
	}
	dir := t.TempDir()
	if said := runLab(t, dir); strings.Count(said, "\n") != len(labImages()) {
		t.Fatalf("built %q, want %d images", said, len(labImages()))
	}
	return dir
}

// runLab builds the lab's images and returns what it says.
func runLab(t *testing.T, dir string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"lab", "-root", productRoot, "-out", dir}, &out, project{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// loaded is an image as a runtime sees it.
type loaded struct {
	name   string
	config v1.Image
	layer  []byte
}

// load reads an archive as a runtime does: every digest is checked.
func load(t *testing.T, name string) loaded {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := readTar(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	layout := reader{entries: entries, used: map[digest.Digest]bool{}}
	var mark v1.ImageLayout
	var top v1.Index
	var manifest v1.Manifest
	var l loaded
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(layout.file(v1.ImageLayoutFile, &mark))
	check(layout.file(v1.ImageIndexFile, &top))
	if mark.Version != v1.ImageLayoutVersion || len(top.Manifests) != 1 {
		t.Fatalf("layout %q with %d images", mark.Version, len(top.Manifests))
	}
	l.name = top.Manifests[0].Annotations[containerdName]
	check(layout.json(top.Manifests[0], v1.MediaTypeImageManifest, &manifest))
	check(layout.json(manifest.Config, v1.MediaTypeImageConfig, &l.config))
	l.layer, err = layout.blob(manifest.Layers[0], v1.MediaTypeImageLayer)
	check(err)
	check(layout.unused())
	if want := []digest.Digest{digest.FromBytes(l.layer)}; !slices.Equal(l.config.RootFS.DiffIDs, want) || len(manifest.Layers) != 1 {
		t.Errorf("%d layers, in the configuration %v, want %v", len(manifest.Layers), l.config.RootFS.DiffIDs, want)
	}
	return l
}

// What the archives say of themselves, and that they are made again only where they have to be.
func TestLab(t *testing.T) {
	t.Parallel()
	dir := labArchives(t)
	for archive, want := range map[string]struct{ name, config string }{
		"pause.tar":    {"tombolo.example/pause:lab", `{"User":"65532:65532","Entrypoint":["/pause"]}`},
		"probe.tar":    {"tombolo.example/probe:lab", `{"Env":["` + searchPath + `"],"Entrypoint":["/probe"],"WorkingDir":"/"}`},
		"socat.tar":    {"docker.io/alpine/socat:1.7.4.4", `{"Env":["` + searchPath + `"],"Entrypoint":["socat"],"WorkingDir":"/"}`},
		"netshoot.tar": {"docker.io/nicolaka/netshoot:v0.15", `{"Env":["` + searchPath + `"],"Cmd":["sh"],"WorkingDir":"/"}`},
	} {
		got := load(t, filepath.Join(dir, archive))
		config, err := json.Marshal(got.config.Config)
		if err != nil || got.name != want.name || string(config) != want.config || got.config.OS != "linux" || got.config.Architecture != runtime.GOARCH {
			t.Errorf("%s: %s for %s/%s %s, %v\nwant %s %s", archive, got.name, got.config.OS, got.config.Architecture, config, err, want.name, want.config)
		}
	}
	if said := runLab(t, dir); said != "" {
		t.Errorf("with nothing to do: %q", said)
	}
	probe, pause := filepath.Join(dir, "probe.tar"), filepath.Join(dir, "pause.tar")
	before, err := os.ReadFile(probe)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(pause); err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(filepath.Join(dir, "socat.tar"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(probe, other, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := runLab(t, dir); strings.Count(said, "\n") != 2 || !strings.Contains(said, pause+": tombolo.example/pause:lab, ") || !strings.Contains(said, probe+": tombolo.example/probe:lab, ") {
		t.Errorf("without one, and with another's in place of one: %q", said)
	}
	if after, err := os.ReadFile(probe); err != nil || !bytes.Equal(after, before) {
		t.Errorf("a second build gives other bytes, %v", err)
	}
}

// Whatever stands where an archive should be is replaced, unless it has the same index.
func TestHolds(t *testing.T) {
	t.Parallel()
	index := v1.Index{MediaType: v1.MediaTypeImageIndex}
	same, err := store{}.layout(index, labTime)
	if err != nil {
		t.Fatal(err)
	}
	other, err := store{}.layout(v1.Index{}, labTime)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		content []byte
		want    bool
	}{"the same": {same, true}, "another": {other, false}, "half": {same[:700], false}, "nothing": {nil, false}, "no archive": {[]byte("hello"), false}} {
		file := filepath.Join(t.TempDir(), "a.tar")
		if err := os.WriteFile(file, test.content, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := holds(file, index); got != test.want || err != nil {
			t.Errorf("%s: %v, %v, want %v", name, got, err, test.want)
		}
	}
	if got, err := holds(filepath.Join(t.TempDir(), "none"), index); got || err != nil {
		t.Errorf("no file: %v, %v", got, err)
	}
}

// unpack writes the files of a layer below a folder, as a runtime does.
func unpack(t *testing.T, layer []byte) string {
	t.Helper()
	dir := t.TempDir()
	entries, err := readTar(bytes.NewReader(layer))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range entries {
			if !yield(name) {
				return
			}
		}
	}) {
		e, to := entries[name], filepath.Join(dir, name)
		switch e.header.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(to, 0o755)
		case tar.TypeSymlink:
			err = os.Symlink(e.header.Linkname, to)
		default:
			err = writeProgram(to, e.content, e.header.FileInfo().Mode())
		}
		if err == nil && e.header.Typeflag != tar.TypeSymlink {
			err = os.Chmod(to, e.header.FileInfo().Mode())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The programs run where there is nothing but the image.
func TestLabPrograms(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("chroot needs root")
	}
	dir := labArchives(t)
	shells := []string{
		"test -w /tmp && touch /tmp/file && cat /tmp/file && ls -ld /tmp", "drwxrwxrwt",
		"id", "uid=0(root) gid=0(root)",
		"sleep 0; ip help; ping; wget", "Usage: wget",
	}
	tools := slices.Concat(shells, []string{
		"nc -h", "OpenBSD netcat",
		"nc -4 -v -w 1 127.0.0.1 1; true", "nc: connect to 127.0.0.1 port 1 (tcp) failed: ",
		"socat -V", "socat version 1.7.4.4",
		"echo hello | socat -t 60 - EXEC:cat", "hello",
		"nslookup -version", "nslookup 9.",
	})
	for archive, commands := range map[string][]string{
		"probe.tar":    append(shells, "/probe lookup 127.0.0.1", `"addresses":["127.0.0.1"]`, "nslookup; nc", "Usage: nslookup"),
		"socat.tar":    tools,
		"netshoot.tar": tools,
	} {
		t.Run(archive, func(t *testing.T) {
			t.Parallel()
			root := unpack(t, load(t, filepath.Join(dir, archive)).layer)
			for pair := range slices.Chunk(commands, 2) {
				said, err := inside(t, root, pair[0])
				if !strings.Contains(said, pair[1]) {
					t.Errorf("%s: %v: %q, want %q in it", pair[0], err, said, pair[1])
				}
			}
		})
	}
}

// inside runs a shell's command with an image's files as the root, and /proc as pods have it: busybox runs its own programs
// through it. The mount ends with the command.
func inside(t *testing.T, root, command string) (string, error) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(root, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	// chroot itself is looked for outside.
	outside, err := exec.LookPath("chroot")
	if err != nil {
		t.Fatal(err)
	}
	const enter = `mount --bind /proc "$0/proc" && PATH="$3" && exec "$1" "$0" /bin/sh -c "$2"`
	said, err := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", enter, root, outside, command, strings.TrimPrefix(searchPath, "PATH=")).CombinedOutput()
	return string(said), err
}

// A host without the packages is told which ones it needs.
func TestLabMissing(t *testing.T) {
	t.Parallel()
	const advice = ": a lab's images are made of Debian's programs: apt-get install busybox-static socat netcat-openbsd bind9-dnsutils"
	d := debian{t.TempDir()}
	_, err := d.shell(t.Context())
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasSuffix(err.Error(), advice) {
		t.Errorf("no busybox: %v", err)
	}
	_, err = d.programs(t.Context(), map[string]string{"/usr/bin/socat": "socat"})
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasSuffix(err.Error(), advice) {
		t.Errorf("no socat: %v", err)
	}
	if runtime.GOOS != "linux" {
		return
	}
	// The busybox of the package without -static.
	content, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.bin, "busybox"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.shell(t.Context()); err == nil || err.Error() != filepath.Join(d.bin, "busybox")+": is not static"+advice {
		t.Errorf("a busybox with libraries: %v", err)
	}
}

func TestLibrariesOf(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		said string
		want []string
		err  string
	}{
		"libraries": {
			"\tlinux-vdso.so.1 (0x00007f84a1e87000)\n\tlibz.so.1 => /lib/x/libz.so.1 (0x1)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x2)\n\t/lib64/ld-linux-x86-64.so.2 (0x3)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x2)\n",
			[]string{"/lib/x/libc.so.6", "/lib/x/libz.so.1", "/lib64/ld-linux-x86-64.so.2"},
			"",
		},
		"a folder up": {"\tliba.so => /lib/x/../y/liba.so (0x1)\n", []string{"/lib/y/liba.so"}, ""},
		"static":      {"\tstatically linked\n", nil, ""},
		"none":        {"\tlibgone.so.1 => not found\n", nil, "libgone.so.1 is not found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := librariesOf(test.said)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			wantError(t, err, test.err)
		})
	}
}

// A link and a folder with a bit of its own, in an archive and back.
func TestLayerKinds(t *testing.T) {
	t.Parallel()
	content, err := layer([]file{
		{"/bin/sh", fs.ModeSymlink | 0o777, []byte("busybox")},
		{"/tmp", fs.ModeDir | fs.ModeSticky | 0o777, nil},
	}, labTime)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %q %d", h.FileInfo().Mode(), h.Name, h.Linkname, h.Size))
	}
	want := []string{`drwxr-xr-x bin/ "" 0`, `Lrwxrwxrwx bin/sh "busybox" 0`, `dtrwxrwxrwx tmp/ "" 0`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// patience is for a machine that is busy with other tests.
const patience = 2 * time.Minute

// within waits until a thing holds, which nothing announces.
func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		}
	}
}
