// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/opencontainers/go-digest"
)

// tiny stands for the images of the project: it compiles in a second.
func tiny() image {
	return image{
		name: "tiny", stage: "small", title: "Tiny", description: "A tiny program", pkg: "./cmd/tiny",
		versionVariable: "main.version", ports: []port{{1053, "udp", "DNS"}, {9153, "tcp", "metrics"}},
	}
}

var root = filepath.Join("testdata", "tiny")

func tinyProject(root string) project {
	return project{images: []image{tiny()}, platforms: platforms(), root: root, repository: "example.com/team"}
}

func someRelease() release {
	return release{version: "v1.2.3", revision: strings.Repeat("ab", 20), time: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)}
}

// programs are the tiny programs, compiled once for all tests.
var programs = sync.OnceValues(func() ([]program, error) {
	var all []program
	for _, p := range platforms() {
		content, err := compile(context.Background(), root, tiny(), p, someRelease().version, io.Discard)
		if err != nil {
			return nil, err
		}
		all = append(all, program{p, content})
	}
	return all, nil
})

func tinyPrograms(t *testing.T) []program {
	t.Helper()
	all, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// gitIn runs git in dir, as somebody.
func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	command := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}, args...)...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-05-04T03:02:01Z", "GIT_AUTHOR_DATE=2020-01-01T00:00:00Z")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, output)
	}
}

// clone returns a folder with the tiny module under git, one commit old.
func clone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "init", "--quiet")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "--quiet", "--message=tiny: begin")
	return dir
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// What build writes, check accepts: the archives are right, and a build from a copy of the sources is the same.
func TestBuildThenCheck(t *testing.T) {
	dir, out := clone(t), filepath.Join(t.TempDir(), "out")
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	gitIn(t, dir, "tag", "v1.2.3")
	var log bytes.Buffer
	for _, command := range []string{"build", "check"} {
		err := run(t.Context(), []string{command, "-root=" + dir, "-out=" + out, "-repository=example.com/team"}, &log, tinyProject(""))
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, &log)
		}
	}
	name := filepath.Join(out, "tiny.tar")
	archive := read(t, name)
	for _, want := range []string{
		"build tiny v1.2.3 for linux/amd64 (minutes, the first time) ... ",
		"build tiny v1.2.3 for linux/arm64 (minutes, the first time) ... ",
		name + ": example.com/team/tiny:v1.2.3, ",
		string(digest.FromBytes(archive)),
		name + ": verified; a second build gives the same bytes\n",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, &log)
		}
	}
	if got := entriesOf(t, archive)["index.json"].content; !bytes.Contains(got, []byte(`"io.containerd.image.name":"example.com/team/tiny:v1.2.3"`)) {
		t.Errorf("index.json names no image: %s", got)
	}
	if left := append(list(t, out), list(t, scratch)...); !slices.Equal(left, []string{"tiny.tar"}) {
		t.Errorf("build and check left %v", left)
	}
}

// list returns the names of what is in dir.
func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// Two builds of one commit are the same, wherever and with whatever environment; those of other dates are not.
func TestReproducible(t *testing.T) {
	t.Parallel()
	digests := func(epoch string) digest.Digest {
		out := t.TempDir()
		p := tinyProject("")
		p.epoch = epoch
		args := []string{"build", "-root=" + clone(t), "-out=" + out}
		if err := run(t.Context(), args, io.Discard, p); err != nil {
			t.Fatal(err)
		}
		return digest.FromBytes(read(t, filepath.Join(out, "tiny.tar")))
	}
	first := digests("")
	if second := digests(""); second != first {
		t.Errorf("two builds of one commit: %s, %s", first, second)
	}
	if same := digests("1777863721"); same != first {
		t.Errorf("SOURCE_DATE_EPOCH of the commit's own date changes the archive: %s, %s", first, same)
	}
	if other := digests("1777863722"); other == first {
		t.Error("SOURCE_DATE_EPOCH is not honoured")
	}
}

// The builder's environment does not reach the programs.
func TestCompileIgnoresEnvironment(t *testing.T) {
	before := tinyPrograms(t)[0]
	for name, value := range map[string]string{
		"CGO_ENABLED": "1", "GOOS": "plan9", "GOARCH": "386", "GOAMD64": "v3", "GOFLAGS": "-tags=other", "GOWORK": "/nowhere/go.work",
	} {
		t.Setenv(name, value)
	}
	after, err := compile(t.Context(), root, tiny(), before.platform, someRelease().version, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before.content, after) {
		t.Error("the environment changes the program")
	}
}

// A check finds an archive that is of other sources, and one that was changed.
func TestCheckFindsOldArchives(t *testing.T) {
	t.Parallel()
	dir, out := clone(t), t.TempDir()
	p := tinyProject(dir)
	check := func(version string) error {
		return p.check(t.Context(), out, given{version: version}, io.Discard)
	}
	if err := check(""); err == nil || !strings.HasSuffix(err.Error(), "no such file or directory: build the archives first") {
		t.Errorf("without archives: %v", err)
	}
	if err := p.build(t.Context(), out, given{version: "v1"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := check("v2"); err == nil || !strings.HasSuffix(err.Error(), "want tiny:v2; were the sources changed since it was built?") {
		t.Errorf("of another version: %v", err)
	}
	source := filepath.Join(dir, "cmd", "tiny", "main.go")
	text := bytes.ReplaceAll(read(t, source), []byte("os.Exit(1)"), []byte("os.Exit(2)"))
	if err := os.WriteFile(source, text, 0o600); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "commit", "--quiet", "--all", "--message=tiny: change")
	p.epoch = ""
	g := given{version: "v1", revision: revisionIn(t, read(t, filepath.Join(out, "tiny.tar")))}
	err := p.check(t.Context(), out, g, io.Discard)
	if err == nil || !regexp.MustCompile(`tiny\.tar: a second build differs from byte \d+ on \(\d+ and \d+ bytes\)$`).MatchString(err.Error()) {
		t.Errorf("of other sources: %v", err)
	}
}

// The second build has only what git knows: a source that it ignores is found to be missing.
func TestCheckFindsIgnoredSources(t *testing.T) {
	t.Parallel()
	dir, out := clone(t), t.TempDir()
	for name, text := range map[string]string{
		".git/info/exclude":   "ignored.go\n",
		"cmd/tiny/ignored.go": "package main\n\nfunc init() { println(version) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := tinyProject(dir)
	if err := p.build(t.Context(), out, given{}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := p.check(t.Context(), out, given{}, io.Discard); err == nil || !strings.Contains(err.Error(), "tiny.tar: a second build differs from byte ") {
		t.Errorf("got %v", err)
	}
}

// revisionIn returns the revision that an archive of the tiny image was built from.
func revisionIn(t *testing.T, archive []byte) string {
	t.Helper()
	for _, e := range entriesOf(t, archive) {
		if found := regexp.MustCompile(`"org.opencontainers.image.revision":"([0-9a-f]{40})"`).FindSubmatch(e.content); found != nil {
			return string(found[1])
		}
	}
	t.Fatal("the archive names no revision")
	return ""
}

func entriesOf(t *testing.T, archive []byte) map[string]entry {
	t.Helper()
	entries, err := readTar(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	const usage = "say what to do: build, check, files, dockerfile or lab"
	full := filepath.Join(root, "cmd")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing":          {nil, usage},
		"unknown":          {[]string{"push", "-out=x"}, `"push" is unknown: ` + usage},
		"no folder":        {[]string{"build"}, "-out is missing: name a folder"},
		"an argument":      {[]string{"build", "-out=x", "all"}, `unexpected argument "all": see images build -help`},
		"no image":         {[]string{"files", "-out=x"}, `-image="": must be one of tiny`},
		"no platform":      {[]string{"files", "-out=x", "-image=tiny"}, `-platform="": must be linux/ARCH, as in linux/arm64`},
		"another system":   {[]string{"files", "-out=x", "-image=tiny", "-platform=plan9/amd64"}, `-platform="plan9/amd64": must be linux/ARCH, as in linux/arm64`},
		"a variant":        {[]string{"files", "-out=x", "-image=tiny", "-platform=linux/arm/v7"}, `-platform="linux/arm/v7": must be linux/ARCH, as in linux/arm64`},
		"no version":       {[]string{"files", "-out=x", "-image=tiny", "-platform=linux/arm64"}, "-version is missing: state the image's version"},
		"files over files": {[]string{"files", "-out=" + full, "-image=tiny", "-platform=linux/amd64", "-version=v1.2.3", "-root=" + root}, "-out " + full + ": must be empty: name another folder"},
		"another root":     {[]string{"dockerfile", "-root=testdata"}, "open testdata/go.mod: no such file or directory: state the module's root with -root"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := run(t.Context(), test.args, io.Discard, tinyProject(""))
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// What does not compile is told with the compiler's words.
func TestCompileError(t *testing.T) {
	t.Parallel()
	broken := tiny()
	broken.pkg = "./cmd/none"
	_, err := compile(t.Context(), root, broken, platforms()[0], "v1", io.Discard)
	if err == nil || !strings.HasPrefix(err.Error(), "go build ./cmd/none for linux/amd64 in "+root+": exit status 1\n") || !strings.Contains(err.Error(), "cmd/none") {
		t.Errorf("got %v", err)
	}
}

// What go build -v says is told in brief, and only its complaints are part of an error.
func TestFollow(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	said := "# example.com/a\n" + strings.Repeat("example.com/b/c\n", 250) + "b/c.go:1:2: undefined: d\ninternal/e"
	complaints, err := follow(strings.NewReader(said), &out)
	if err != nil {
		t.Fatal(err)
	}
	if want := "# example.com/a\nb/c.go:1:2: undefined: d\n"; complaints != want {
		t.Errorf("complaints %q, want %q", complaints, want)
	}
	if want := "100 packages ... 200 packages ... "; out.String() != want {
		t.Errorf("progress %q, want %q", &out, want)
	}
	broken := errors.New("broken pipe")
	if complaints, err = follow(iotest.ErrReader(broken), io.Discard); !errors.Is(err, broken) || complaints != "" {
		t.Errorf("a pipe that breaks: %q, %v", complaints, err)
	}
}
