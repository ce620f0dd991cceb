// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"
)

var (
	productRoot = filepath.Join("..", "..")
	commitTime  = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
)

// tiny returns a builder of one program that compiles in a second.
func tiny(root string, log io.Writer) builder {
	return builder{
		programs: []program{{
			name: "tiny", title: "Tiny", description: "A tiny program", pkg: "./cmd/tiny", versionVariable: "main.version",
			ports: []string{"1053/udp", "9153/tcp"},
		}},
		platforms: []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}},
		root:      root, repository: "example.com/team", log: log,
	}
}

// gitIn runs git in dir.
func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	command := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}, args...)...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-05-04T03:02:01Z", "GIT_AUTHOR_DATE=2020-01-01T00:00:00Z")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, output)
	}
}

// clone returns a folder with the tiny module as the one commit of a repository.
func clone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "tiny"))))
	gitIn(t, dir, "init", "--quiet")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "--quiet", "--message=tiny: begin")
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, []byte(text), 0o600))
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	must(t, err)
	return content
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// TestCheck: check accepts what build writes, and nothing else.
func TestCheck(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, command, root, out string, more ...string) (string, error) {
		t.Helper()
		var log bytes.Buffer
		err := tiny("", &log).run(t.Context(), append([]string{command, "-root=" + root, "-out=" + out, "-version=v1.2.3", "-revision=abc"}, more...), "")
		return log.String(), err
	}
	built := t.TempDir()
	if _, err := run(t, "build", clone(t), built); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(t *testing.T, root, archive string)
		flags  []string
		want   string
	}{
		"good":            {},
		"another version": {flags: []string{"-version=v2"}, want: "tiny:v2 of what is committed, gives other bytes: were the sources changed since it was built?"},
		"no archive":      {change: func(_ *testing.T, _, archive string) { os.Remove(archive) }, want: "build the archives first"},
		"no tar file":     {change: func(t *testing.T, _, archive string) { t.Helper(); write(t, archive, "hello") }, want: "gives other bytes"},
		"other sources": {change: func(t *testing.T, root, _ string) {
			t.Helper()
			write(t, filepath.Join(root, "cmd", "tiny", "more.go"), "package main\n\nfunc init() { println(version) }\n")
			gitIn(t, root, "add", ".")
			gitIn(t, root, "commit", "--quiet", "--message=tiny: change")
		}, want: "of what is committed, gives other bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, out := clone(t), t.TempDir()
			archive := filepath.Join(out, "tiny.tar")
			write(t, archive, string(read(t, filepath.Join(built, "tiny.tar"))))
			if test.change != nil {
				test.change(t, root, archive)
			}
			log, err := run(t, "check", root, out, test.flags...)
			wantError(t, err, test.want)
			if ok := strings.HasSuffix(log, archive+": verified; a second build gives the same bytes\n"); ok != (err == nil) {
				t.Errorf("check says %q", log)
			}
		})
	}
}

// TestReproducible: two builds of a commit are the same in any folder and environment; those of other dates are not.
func TestReproducible(t *testing.T) {
	build := func(epoch string) []byte {
		out := t.TempDir()
		must(t, tiny("", io.Discard).run(t.Context(), []string{"build", "-root=" + clone(t), "-out=" + out}, epoch))
		return read(t, filepath.Join(out, "tiny.tar"))
	}
	first := build("")
	if !bytes.Equal(build("1777863721"), first) {
		t.Error("SOURCE_DATE_EPOCH of the commit's own date changes the archive")
	}
	if bytes.Equal(build("1777863722"), first) {
		t.Error("SOURCE_DATE_EPOCH is not used")
	}
	for name, value := range map[string]string{
		"CGO_ENABLED": "1", "GOOS": "plan9", "GOARCH": "386", "GOAMD64": "v3", "GOFLAGS": "-tags=other", "GOWORK": "/nowhere/go.work",
	} {
		t.Setenv(name, value)
	}
	if !bytes.Equal(build(""), first) {
		t.Error("the environment changes the archive")
	}
}

// TestCommandLine: a wrong command line is an error that says what is wrong.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing":         {nil, "usage: images build | check | files | lab [flags]"},
		"unknown":         {[]string{"push", "-out=x"}, "usage: images build"},
		"no folder":       {[]string{"build"}, "-out is missing"},
		"an argument":     {[]string{"build", "-out=x", "all"}, `["all"] are too many arguments: see images build -help`},
		"no image":        {[]string{"files", "-out=x", "-platform=linux/arm64"}, `-image="" is unknown`},
		"a wrong package": {[]string{"files", "-out=x", "-image=tiny", "-platform=linux/arm64", "-root=."}, "go build ./cmd/tiny for linux/arm64 in .: exit status 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantError(t, tiny("", io.Discard).run(t.Context(), test.args, ""), test.want)
		})
	}
}

// TestRelease: the version is a tag of the commit or its hash, and what is stated has priority.
func TestRelease(t *testing.T) {
	t.Parallel()
	tags := func(names ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			for _, name := range names {
				gitIn(t, dir, "tag", name)
			}
		}
	}
	file := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, name), "// new\n") }
	}
	for name, test := range map[string]struct {
		change        func(t *testing.T, dir string)
		stated, epoch string
		want, err     string // COMMIT is the hash of the commit
	}{
		"a commit":           {want: "dev-COMMIT"},
		"the highest tag":    {change: tags("v1.1.0", "v1.9.0", "v1.10.0", "other"), want: "v1.10.0"},
		"a candidate":        {change: tags("v1.0.0-rc.1", "v1.0.0", "v1.0.0-rc.2"), want: "v1.0.0"},
		"a changed file":     {change: file("go.mod"), want: "dev-COMMIT-dirty"},
		"a new file":         {change: file("cmd/tiny/more.go"), want: "dev-COMMIT-dirty"},
		"what was built":     {change: file("out/tiny.tar"), want: "dev-COMMIT"},
		"a stated version":   {stated: "v7", want: "v7"},
		"a stated date":      {epoch: "1777863721", want: "dev-COMMIT"},
		"no date":            {epoch: "now", err: `SOURCE_DATE_EPOCH="now": must be seconds since 1970`},
		"a date before 1970": {epoch: "-1", err: `SOURCE_DATE_EPOCH="-1": must be seconds since 1970`},
		"no legal tag":       {stated: "v1+build", err: `version "v1+build" cannot be the tag of an image: `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clone(t)
			if test.change != nil {
				test.change(t, dir)
			}
			got, err := releaseOf(t.Context(), dir, release{version: test.stated}, test.epoch)
			wantError(t, err, test.err)
			if err != nil {
				return
			}
			commit, _, dirty := strings.Cut(got.revision, "-dirty")
			if want := strings.ReplaceAll(test.want, "COMMIT", commit[:min(12, len(commit))]); got.version != want || !got.time.Equal(commitTime) || len(commit) != 40 || dirty != strings.HasSuffix(want, "-dirty") {
				t.Errorf("got %+v, want %s of %s", got, want, commitTime)
			}
		})
	}
	outside := t.TempDir()
	_, err := releaseOf(t.Context(), outside, release{version: "v1"}, "5")
	wantError(t, err, "outside of a clone, state -version, -revision and SOURCE_DATE_EPOCH")
	stated := release{"v1", "abc", time.Unix(5, 0).UTC()}
	if got, err := releaseOf(t.Context(), outside, release{version: "v1", revision: "abc"}, "5"); got != stated || err != nil {
		t.Errorf("got %v, %v, want %v", got, err, stated)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
