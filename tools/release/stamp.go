// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// stampOf is the version of a release in a file of the sources.
type stampOf struct {
	file    string
	pattern *regexp.Regexp
	version string
}

// stamps returns all of them. kubectl clusterset and the kustomizations have the complete names of the images from the first. A tag
// contains the stamped files, so that what is installed from the tag by other means than the files of the release names the same
// images.
func (r release) stamps() []stampOf {
	all := []stampOf{{imagesFile, regexp.MustCompile(`(?m)(newTag: )[^}\s]+(})$`), r.version}}
	for _, file := range []string{"manifests/hub/kustomization.yaml", "charts/tombolo-hub/files/crds.yaml"} {
		all = append(all, stampOf{file, regexp.MustCompile(`(?m)^(\s+tombolo-mcs\.io/version: )\S+()$`), r.version})
	}
	for _, c := range charts {
		all = append(all,
			stampOf{"charts/" + c + "/Chart.yaml", regexp.MustCompile(`(?m)^(version: )\S+()$`), r.chartVersion()},
			stampOf{"charts/" + c + "/Chart.yaml", regexp.MustCompile(`(?m)^(appVersion: )\S+()$`), r.version})
	}
	return all
}

// stamp writes the version into the sources.
func (r release) stamp() error {
	for _, s := range r.stamps() {
		name := filepath.Join(r.root, s.file)
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if !s.pattern.Match(text) {
			return fmt.Errorf("%s has no line %s", s.file, s.pattern)
		}
		text = s.pattern.ReplaceAll(text, []byte("${1}"+s.version+"${2}"))
		if err := os.WriteFile(name, text, 0o644); err != nil { //nolint:gosec // a source
			return err
		}
	}
	return nil
}

// revisionOf returns the commit of the sources.
func revisionOf(ctx context.Context, root string) (string, error) {
	command := exec.CommandContext(ctx, "git", "rev-parse", "HEAD")
	command.Dir = root
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git rev-parse: %w", err)
	}
	return strings.TrimSpace(string(output)), nil
}

// stampedCopy returns a folder with the sources of the commit, and the version in them. Changes that are not committed are not in it.
func (r release) stampedCopy(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "tombolo-sources-")
	if err != nil {
		return "", err
	}
	archive := dir + ".tar"
	defer os.Remove(archive)
	err = r.exec(ctx, ".", "git", "archive", "--output="+archive, "HEAD")
	if err == nil {
		err = r.exec(ctx, ".", "tar", "-x", "-p", "-f", archive, "-C", dir)
	}
	if err == nil {
		r.root = dir
		err = r.stamp()
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}
