// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command images builds the images of the project without a daemon, and writes the Dockerfile that builds the same ones.
// Both are made from one recipe (recipe.go).
//
//	images build        OCI archives of all images, for all platforms, into -out
//	images check        verify the archives in -out, and that a build from a copy of the sources gives the same bytes
//	images files        the files of one image for one platform, into -out: what the Dockerfile copies
//	images dockerfile   print the Dockerfile
//	images lab          archives of what the pods of a lab run, these images among them, into -out
//	images lab          archives of the images that a lab's pods run, into -out (labrecipe.go); only what is stale
//
// An archive is an OCI image layout in a tar file, written here with the format's own Go types: a library for registries
// would bring much that is not needed, and would not write this very format. The bytes depend on the commit and the version
// of Go alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, project{images: images(), platforms: platforms(), epoch: os.Getenv("SOURCE_DATE_EPOCH")})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// project is what is built, and how.
type project struct {
	images    []image
	platforms []platform
	// epoch is SOURCE_DATE_EPOCH.
	epoch string
	root  string
	// repository is what the images' names begin with. Under localhost, Podman has what was built here, and no kubelet asks a
	// registry for it.
	repository string
}

// run does what the arguments say and tells progress on out.
func run(ctx context.Context, args []string, out io.Writer, p project) error {
	const usage = "say what to do: build, check, files, dockerfile or lab"
	if len(args) == 0 {
		return errors.New(usage)
	}
	var name, platform, to string
	g := given{epoch: p.epoch}
	flags := flag.NewFlagSet("images "+args[0], flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&p.root, "root", filepath.Join("..", ".."), "the root of the product's module")
	flags.StringVar(&to, "out", "", "the folder to write to, or to check")
	flags.StringVar(&p.repository, "repository", "localhost", "what the images' names begin with")
	flags.StringVar(&g.version, "version", "", "the images' version; of git where empty")
	flags.StringVar(&g.revision, "revision", "", "the commit; of git where empty")
	flags.StringVar(&name, "image", "", "files: of which image")
	flags.StringVar(&platform, "platform", "", "files: for which platform, as in linux/arm64")
	if err := flags.Parse(args[1:]); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: see images %s -help", flags.Arg(0), args[0])
	}
	if to == "" && args[0] != "dockerfile" {
		return errors.New("-out is missing: name a folder")
	}
	switch args[0] {
	case "build":
		return p.build(ctx, to, g, out)
	case "check":
		return p.check(ctx, to, g, out)
	case "files":
		return p.files(ctx, to, name, platform, g.version, out)
	case "dockerfile":
		return p.dockerfile(out)
	case "lab":
		return p.lab(ctx, to, out)
	default:
		return fmt.Errorf("%q is unknown: %s", args[0], usage)
	}
}

// build writes the archives of all images.
func (p project) build(ctx context.Context, to string, g given, out io.Writer) error {
	r, err := releaseOf(ctx, p.root, g)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, i := range p.images {
		content, err := p.archive(ctx, i, r, out)
		if err != nil {
			return err
		}
		if err := replace(archiveName(to, i), content); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %s/%s:%s, %.1f MB, %s\n", archiveName(to, i), p.repository, i.name, r.version,
			megabytes(content), digest.FromBytes(content))
	}
	return nil
}

// archive returns the archive of the image for all platforms.
func (p project) archive(ctx context.Context, i image, r release, out io.Writer) ([]byte, error) {
	var programs []program
	for _, target := range p.platforms {
		content, err := p.compile(ctx, i, target, r.version, out)
		if err != nil {
			return nil, err
		}
		programs = append(programs, program{target, content})
	}
	return archive(i, r, p.repository, programs)
}

// compile compiles and says so: the first time takes minutes.
func (p project) compile(ctx context.Context, i image, target platform, version string, out io.Writer) ([]byte, error) {
	fmt.Fprintf(out, "build %s %s for %s (minutes, the first time) ... ", i.name, version, target)
	start := time.Now()
	content, err := compile(ctx, p.root, i, target, version, out)
	if err != nil {
		fmt.Fprintln(out, "failed")
		return nil, err
	}
	fmt.Fprintf(out, "%.1f MB in %.0f s\n", megabytes(content), time.Since(start).Seconds())
	return content, nil
}

// files writes the files of one image, for the Dockerfile.
func (p project) files(ctx context.Context, to, name, target, version string, out io.Writer) error {
	i, err := find(p.images, name)
	if err != nil {
		return err
	}
	parsed, err := parsePlatform(target)
	if err != nil {
		return err
	}
	if version == "" {
		return errors.New("-version is missing: state the image's version")
	}
	content, err := p.compile(ctx, i, parsed, version, out)
	if err != nil {
		return err
	}
	return writeFiles(to, filesOf(i, content))
}

// dockerfile prints the Dockerfile.
func (p project) dockerfile(out io.Writer) error {
	version, err := goVersionOf(p.root)
	if err != nil {
		return err
	}
	text, err := dockerfileOf(p.images, version)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

func archiveName(dir string, i image) string { return filepath.Join(dir, i.name+".tar") }

// replace writes the file in one step, so that an interrupted build leaves no half archive.
func replace(name string, content []byte) error {
	if err := os.WriteFile(name+".new", content, 0o644); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func megabytes(content []byte) float64 { return float64(len(content)) / 1e6 }
