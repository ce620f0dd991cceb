// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// release is the state of the sources that an image is made of.
type release struct {
	// version is a tag such as v1.2.3, or devel-COMMIT; "-dirty" is added where the sources are not those of the commit.
	version  string
	revision string
	// time is what everything in an image is dated: the commit's, or that of SOURCE_DATE_EPOCH.
	time time.Time
}

// tag is what the version of an image may be: the specification of distribution says so of tags.
var tag = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)

// given is what a builder states instead of git: the flags, and SOURCE_DATE_EPOCH.
type given struct{ version, revision, epoch string }

// releaseOf returns the release that root's sources are. git is asked only for what is not given, so an unpacked archive
// can be built as well.
func releaseOf(ctx context.Context, root string, g given) (release, error) {
	r := release{version: g.version, revision: g.revision}
	if r.version == "" || r.revision == "" || g.epoch == "" {
		found, err := ask(ctx, root)
		if err != nil {
			return release{}, fmt.Errorf("%w\noutside of a clone, state -version, -revision and SOURCE_DATE_EPOCH", err)
		}
		r = merge(r, found)
	}
	if g.epoch != "" {
		// https://reproducible-builds.org/specs/source-date-epoch/
		seconds, err := strconv.ParseInt(g.epoch, 10, 64)
		if err != nil || seconds < 0 {
			return release{}, fmt.Errorf("SOURCE_DATE_EPOCH=%q: must be seconds since 1970", g.epoch)
		}
		r.time = time.Unix(seconds, 0).UTC()
	}
	if !tag.MatchString(r.version) {
		return release{}, fmt.Errorf("version %q: an image's tag has letters, digits, dots, dashes and underscores only; state another with -version", r.version)
	}
	return r, nil
}

// merge returns stated, completed by what was found.
func merge(stated, found release) release {
	if stated.version != "" {
		found.version = stated.version
	}
	if stated.revision != "" {
		found.revision = stated.revision
	}
	return found
}

// ask returns what git knows of the sources.
func ask(ctx context.Context, root string) (release, error) {
	commit, err := git(ctx, root, "log", "-1", "--format=%H %ct")
	if err != nil {
		return release{}, err
	}
	revision, epoch, _ := strings.Cut(commit, " ")
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return release{}, fmt.Errorf("git log: the date of the commit is %q", epoch)
	}
	r := release{version: "devel-" + revision[:12], revision: revision, time: time.Unix(seconds, 0).UTC()}
	named, err := git(ctx, root, "tag", "--points-at=HEAD", "--sort=-version:refname", "--list", "v*")
	if err != nil {
		return release{}, err
	}
	if first, _, _ := strings.Cut(named, "\n"); first != "" {
		r.version = first
	}
	// What is built lies in bin and out; no source does.
	changed, err := git(ctx, root, "status", "--porcelain", "--untracked-files=normal", "--", ".", ":!bin", ":!out")
	if err != nil {
		return release{}, err
	}
	if changed != "" {
		r.version += "-dirty"
		r.revision += "-dirty"
	}
	return r, nil
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	// A release comes after its candidates, which may be tags of the same commit.
	command := exec.CommandContext(ctx, "git", append([]string{"-c", "versionsort.suffix=-"}, args...)...)
	command.Dir = root
	output, err := command.Output()
	if err != nil {
		said := ""
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			said = ": " + strings.TrimSpace(string(exit.Stderr))
		}
		return "", fmt.Errorf("git %s: %w%s", args[0], err, said)
	}
	return strings.TrimSpace(string(output)), nil
}
