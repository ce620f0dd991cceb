// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release makes what a release consists of:
//
//	release build   all files of the release, from the commit, into -out
//	release stamp   the version, in the sources: before a release is tagged, and "dev" after it
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is what is released.
type release struct {
	root    string // of the repository
	out     string
	version string // a tag such as v1.2.3 or v0.0.0-snapshot
	// revision is the commit.
	revision string
	time     time.Time
}

// versionForm is that of semantic versions, as krew wants it.
var versionForm = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// development is the version in the sources between releases.
const development = "dev"

func run(ctx context.Context, args []string) error {
	if len(args) == 0 || args[0] != "build" && args[0] != "stamp" {
		return errors.New("usage: release build | stamp [flags]")
	}
	flags := flag.NewFlagSet("release "+args[0], flag.ContinueOnError)
	r := release{}
	flags.StringVar(&r.root, "root", "../..", "the repository's root")
	flags.StringVar(&r.out, "out", "../../out/release", "folder of the results, which is emptied first")
	flags.StringVar(&r.version, "version", "v0.0.0-snapshot", "the release's version, a tag")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	isStamp := args[0] == "stamp"
	isDevelopment := isStamp && r.version == development
	if !isDevelopment && !versionForm.MatchString(r.version) {
		return fmt.Errorf("-version=%s: must be as v1.2.3 or v1.2.3-rc.1", r.version)
	}
	if isStamp {
		return r.stamp()
	}
	// What files in archives are dated, so that the same sources give the same bytes: 1970 unless it is stated
	// (https://reproducible-builds.org/specs/source-date-epoch/).
	seconds, err := strconv.ParseInt(cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), "0"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH must be seconds since 1970: %w", err)
	}
	r.time = time.Unix(seconds, 0).UTC()
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if r.revision, err = revisionOf(ctx, r.root); err != nil {
		return err
	}
	return r.build(ctx, platforms())
}

// platform is what a binary is for.
type platform struct{ os, arch string }

func platforms() []platform {
	return []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"}}
}

const program = "kubectl-clusterset"

// binary returns the name of the program's file.
func (p platform) binary() string {
	if p.os == "windows" {
		return program + ".exe"
	}
	return program
}

// archive returns the name of the platform's archive.
func (p platform) archive() string { return fmt.Sprintf("%s_%s_%s.tar.gz", program, p.os, p.arch) }

// bill returns the name of the bill of materials of that archive, in CycloneDX.
func (p platform) bill() string { return p.archive() + ".cdx.json" }
