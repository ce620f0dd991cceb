// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestRelease(t *testing.T) {
	t.Parallel()
	commit := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for name, test := range map[string]struct {
		change      func(t *testing.T, dir string)
		given       given
		wantVersion string // COMMIT stands for the first 12 digits
		wantDirty   string
		wantTime    time.Time
		want        string // of the error
	}{
		"a commit":           {wantVersion: "devel-COMMIT", wantTime: commit},
		"a tag":              {change: tagged("v1.2.3"), wantVersion: "v1.2.3", wantTime: commit},
		"the highest tag":    {change: tagged("v1.1.0", "v1.9.0", "v1.10.0", "other"), wantVersion: "v1.10.0", wantTime: commit},
		"a candidate":        {change: tagged("v1.0.0-rc.1", "v1.0.0", "v1.0.0-rc.2"), wantVersion: "v1.0.0", wantTime: commit},
		"no tag of ours":     {change: tagged("other"), wantVersion: "devel-COMMIT", wantTime: commit},
		"a changed file":     {change: written("go.mod"), wantVersion: "devel-COMMIT-dirty", wantDirty: "-dirty", wantTime: commit},
		"a new file":         {change: written("cmd/tiny/more.go"), wantVersion: "devel-COMMIT-dirty", wantDirty: "-dirty", wantTime: commit},
		"what was built":     {change: written("out/tiny.tar"), wantVersion: "devel-COMMIT", wantTime: commit},
		"a given version":    {given: given{version: "v7"}, wantVersion: "v7", wantTime: commit},
		"a given date":       {given: given{epoch: "7"}, wantVersion: "devel-COMMIT", wantTime: time.Unix(7, 0).UTC()},
		"no date":            {given: given{epoch: "now"}, want: `SOURCE_DATE_EPOCH="now": must be seconds since 1970`},
		"a date before 1970": {given: given{epoch: "-1"}, want: `SOURCE_DATE_EPOCH="-1": must be seconds since 1970`},
		"no legal tag":       {given: given{version: "v1+build"}, want: `version "v1+build": an image's tag has letters, digits, dots, dashes and underscores only; state another with -version`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clone(t)
			if test.change != nil {
				test.change(t, dir)
			}
			got, err := releaseOf(t.Context(), dir, test.given)
			if test.want != "" {
				if err == nil || err.Error() != test.want {
					t.Errorf("got %v, want %s", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !regexp.MustCompile("^[0-9a-f]{40}" + test.wantDirty + "$").MatchString(got.revision) {
				t.Fatalf("revision %q", got.revision)
			}
			version := strings.ReplaceAll(test.wantVersion, "COMMIT", got.revision[:12])
			if got.version != version || !got.time.Equal(test.wantTime) {
				t.Errorf("got %s of %s, want %s of %s", got.version, got.time, version, test.wantTime)
			}
		})
	}
}

func tagged(tags ...string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		for _, tag := range tags {
			gitIn(t, dir, "tag", tag)
		}
	}
}

func written(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		name := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("// new\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Without git everything must be stated, and then git is not asked.
func TestReleaseOutsideOfGit(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(dir))
	_, err := releaseOf(t.Context(), dir, given{version: "v1", revision: "abc"})
	if err == nil || !strings.HasPrefix(err.Error(), "git log: exit status 128: fatal: not a git repository") ||
		!strings.HasSuffix(err.Error(), "\noutside of a clone, state -version, -revision and SOURCE_DATE_EPOCH") {
		t.Errorf("got %v", err)
	}
	got, err := releaseOf(t.Context(), dir, given{version: "v1", revision: "abc", epoch: "5"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (release{"v1", "abc", time.Unix(5, 0).UTC()}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
