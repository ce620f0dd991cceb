// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// imagesFile has the registry and the version of all images.
const imagesFile = "manifests/images/kustomization.yaml"

// images returns the names of the images and their registry.
func (r release) images() (names []string, registry string, err error) {
	text, err := os.ReadFile(filepath.Join(r.root, imagesFile))
	if err != nil {
		return nil, "", err
	}
	var k types.Kustomization
	if err := yaml.Unmarshal(text, &k); err != nil {
		return nil, "", fmt.Errorf("%s: %w", imagesFile, err)
	}
	for _, image := range k.Images {
		names, registry = append(names, image.Name), strings.TrimSuffix(image.NewName, "/"+image.Name)
	}
	return names, registry, nil
}

// imagePlatforms are those of tools/images.
var imagePlatforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}}

// buildImages makes an OCI archive of each image, for all its platforms, and the bills of materials of the programs in them.
func (r release) buildImages(ctx context.Context) error {
	names, registry, err := r.images()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "tombolo-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	tool := filepath.Join(scratch, "images")
	if err := r.exec(ctx, "tools/images", "go", "build", "-buildvcs=false", "-o", tool, "."); err != nil {
		return err
	}
	stated := []string{"-root=" + r.root, "-version=" + r.version, "-revision=" + r.revision, "-repository=" + registry}
	if err := r.exec(ctx, ".", tool, append([]string{"build", "-out=" + r.out}, stated...)...); err != nil {
		return err
	}
	for _, name := range names {
		for _, p := range imagePlatforms {
			files := filepath.Join(scratch, "files.tar")
			wanted := []string{"files", "-image=" + name, "-platform=" + p.os + "/" + p.arch, "-out=" + files}
			err := r.exec(ctx, ".", tool, append(wanted, stated...)...)
			if err == nil {
				err = r.exec(ctx, ".", "tar", "-x", "-f", files, "-C", scratch, name)
			}
			if err != nil {
				return err
			}
			materials, err := billOf(filepath.Join(scratch, name), r.version)
			if err != nil {
				return fmt.Errorf("bill of materials of %s: %w", name, err)
			}
			if err := r.write(fmt.Sprintf("%s_%s_%s.cdx.json", name, p.os, p.arch), string(materials)); err != nil {
				return err
			}
		}
	}
	return nil
}

// exec runs a program in a folder of the sources. An error has what it printed.
func (r release) exec(ctx context.Context, folder, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = filepath.Join(r.root, folder)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil {
		return errors.Join(fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err), errors.New(out.String()))
	}
	return nil
}
