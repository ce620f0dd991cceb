// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
)

// release is the state of the sources that an image is built from.
type release struct {
	// version is a tag such as v1.2.3, or dev-COMMIT. With "-dirty", the sources are not those of the commit.
	version  string
	revision string
	// time is the date of everything in an image: that of the commit, or SOURCE_DATE_EPOCH.
	time time.Time
}

// releaseOf returns the release of the sources in root. git is asked only for what is not stated, so an unpacked archive
// can be built too.
func releaseOf(ctx context.Context, root string, stated release, epoch string) (release, error) {
	r := stated
	if stated.version == "" || stated.revision == "" || epoch == "" {
		found, date, err := ask(ctx, root)
		if err != nil {
			return release{}, fmt.Errorf("%w\noutside of a clone, state -version, -revision and SOURCE_DATE_EPOCH", err)
		}
		r.version, r.revision, epoch = cmp.Or(r.version, found.version), cmp.Or(r.revision, found.revision), cmp.Or(epoch, date)
	}
	// https://reproducible-builds.org/specs/source-date-epoch/
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return release{}, fmt.Errorf("SOURCE_DATE_EPOCH=%q: must be seconds since 1970", epoch)
	}
	r.time = time.Unix(seconds, 0).UTC()
	if _, err := name.NewTag("localhost/image:"+r.version, name.StrictValidation); err != nil {
		return release{}, fmt.Errorf("version %q cannot be the tag of an image: %w", r.version, err)
	}
	return r, nil
}

// ask returns the version and the revision of the sources, and the date of the commit, as git knows them.
func ask(ctx context.Context, root string) (r release, epoch string, err error) {
	var answers [3]string
	for n, question := range [][]string{
		{"log", "-1", "--format=%H %ct"},
		{"tag", "--points-at=HEAD", "--sort=-version:refname", "--list", "v*"},
		// What was built is in bin and out, no source is.
		{"status", "--porcelain", "--untracked-files=normal", "--", ".", ":!bin", ":!out"},
	} {
		output, err := git(ctx, root, question...)
		if err != nil {
			return release{}, "", err
		}
		answers[n], _, _ = strings.Cut(string(output), "\n")
	}
	r.revision, epoch, _ = strings.Cut(answers[0], " ")
	r.version = cmp.Or(answers[1], "dev-"+r.revision[:12])
	if answers[2] != "" {
		r.version += "-dirty"
		r.revision += "-dirty"
	}
	return r, epoch, nil
}
