// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command images builds the images of the project, and those of the lab's pods, without a daemon:
//
//	images build   archives of the project's images, for all platforms, into -out
//	images check   verify these archives, and that a build from a copy of the commit gives the same bytes
//	images files   the files of one image for one platform, as the tar file -out: what the Dockerfile unpacks
//	images lab     archives of all images that the pods of a lab run, into -out
//
// An archive is an OCI image layout in a tar file. Its bytes depend only on the commit and the version of Go.
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

	"github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	b := builder{programs: programs(), platforms: []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}, log: os.Stdout}
	err := b.run(ctx, os.Args[1:], os.Getenv("SOURCE_DATE_EPOCH"))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// builder builds the images of programs.
type builder struct {
	programs   []program
	platforms  []v1.Platform
	root       string // of the product's module
	repository string // what the names of the images begin with
	log        io.Writer
}

// run does what the arguments say.
func (b builder) run(ctx context.Context, args []string, epoch string) error {
	const usage = "usage: images build | check | files | lab [flags]"
	if len(args) == 0 {
		return errors.New(usage)
	}
	var stated release
	var name, platform, out string
	flags := flag.NewFlagSet("images "+args[0], flag.ContinueOnError)
	flags.SetOutput(b.log)
	flags.StringVar(&b.root, "root", filepath.Join("..", ".."), "the root of the product's module")
	flags.StringVar(&out, "out", "", "the folder (files: the tar file) to write to, or to check")
	// No kubelet asks a registry for an image of localhost.
	flags.StringVar(&b.repository, "repository", "localhost", "what the names of the images begin with")
	flags.StringVar(&stated.version, "version", "", "the version of the images; if empty, git is asked")
	flags.StringVar(&stated.revision, "revision", "", "the commit; if empty, git is asked")
	flags.StringVar(&name, "image", "", "files: the name of the image")
	flags.StringVar(&platform, "platform", "", "files: the platform, as in linux/arm64")
	if err := flags.Parse(args[1:]); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if out == "" || flags.NArg() > 0 {
		return fmt.Errorf("-out is missing, or %q are too many arguments: see images %s -help", flags.Args(), args[0])
	}
	switch args[0] {
	case "files":
		return b.writeFiles(ctx, out, name, platform, stated)
	case "lab":
		return b.lab(ctx, out)
	case "build", "check":
	default:
		return errors.New(usage)
	}
	r, err := releaseOf(ctx, b.root, stated, epoch)
	if err != nil {
		return err
	}
	if args[0] == "check" {
		return b.check(ctx, out, r)
	}
	return b.write(ctx, out, r, b.images(r), b.platforms)
}

// write writes an archive of each image into the folder, two at a time: the linker and gzip use one processor each.
func (b builder) write(ctx context.Context, to string, r release, images []image, platforms []v1.Platform) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for _, i := range images {
		group.Go(func() error {
			content, err := i.archive(ctx, r, platforms)
			if err != nil {
				return fmt.Errorf("%s: %w", i.ref, err)
			}
			name := filepath.Join(to, i.file())
			// In one step, so that an interrupted build leaves no incomplete archive.
			if err := errors.Join(os.WriteFile(name+".new", content, 0o644), os.Rename(name+".new", name)); err != nil {
				return err
			}
			fmt.Fprintf(b.log, "%s: %s, %.1f MB\n", name, i.ref, float64(len(content))/1e6)
			return nil
		})
	}
	return group.Wait()
}

// writeFiles writes the files of one image for one platform as a tar file.
func (b builder) writeFiles(ctx context.Context, to, name, platform string, r release) error {
	p, err := v1.ParsePlatform(platform)
	if err != nil {
		return err
	}
	for _, i := range b.images(r) {
		if i.file() != name+".tar" {
			continue
		}
		files, err := i.files(ctx, *p)
		if err != nil {
			return err
		}
		content, err := pack(files, r.time)
		if err != nil {
			return err
		}
		return os.WriteFile(to, content, 0o644)
	}
	return fmt.Errorf("-image=%q is unknown", name)
}
