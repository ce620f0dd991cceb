// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// check returns what is wrong with the files of the release.
func (r release) check(all []platform) error {
	var problems []error
	for _, p := range all {
		problems = append(problems, r.checkArchive(p), r.checkBill(p))
	}
	return errors.Join(append(problems, r.checkSums(all), r.checkKrew(all))...)
}

func (r release) checkSums(all []platform) error {
	got, err := os.ReadFile(filepath.Join(r.out, checksums))
	if err != nil {
		return err
	}
	if want, err := r.sums(all); err != nil || want != string(got) {
		return errors.Join(err, fmt.Errorf("%s is\n%s, and the files have\n%s", checksums, got, want))
	}
	return nil
}

// checkArchive returns an error unless an archive holds the binary, which can be executed, the license, and nothing else.
func (r release) checkArchive(p platform) error {
	file, err := os.Open(filepath.Join(r.out, p.archive()))
	if err != nil {
		return err
	}
	defer file.Close()
	compressed, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", p.archive(), err)
	}
	contents := tar.NewReader(compressed)
	var found []string
	for {
		header, err := contents.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.archive(), err)
		}
		if header.Size == 0 {
			return fmt.Errorf("%s: %s is empty", p.archive(), header.Name)
		}
		found = append(found, fmt.Sprintf("%s %o", header.Name, header.Mode))
	}
	if want := []string{p.binary() + " 755", license + " 644"}; !slices.Equal(found, want) {
		return fmt.Errorf("%s: it holds %v instead of %v", p.archive(), found, want)
	}
	return nil
}

// checkKrew returns an error unless krew would install each platform's archive.
func (r release) checkKrew(all []platform) error {
	text, err := os.ReadFile(filepath.Join(r.out, krewFile))
	if err != nil {
		return err
	}
	plugin, err := parseKrew(text)
	if err != nil {
		return fmt.Errorf("%s: %w", krewFile, err)
	}
	if plugin.Spec.Version != r.version {
		return fmt.Errorf("%s: it is of version %s, not %s", krewFile, plugin.Spec.Version, r.version)
	}
	left := slices.Clone(all)
	for _, k := range plugin.Spec.Platforms {
		p := platform{k.Selector.MatchLabels["os"], k.Selector.MatchLabels["arch"]}
		i := slices.Index(left, p)
		if i < 0 {
			return fmt.Errorf("%s: %s/%s is none of the platforms, or there twice", krewFile, p.os, p.arch)
		}
		left = slices.Delete(left, i, i+1)
		sum, err := r.digest(p.archive())
		if err != nil {
			return err
		}
		in := path.Base(path.Dir(k.URI))
		if path.Base(k.URI) != p.archive() || in != r.version || k.SHA256 != sum || k.Bin != p.binary() {
			return fmt.Errorf("%s: %s/%s: %s in %s with SHA-256 %s is not %s of %s with %s", krewFile, p.os, p.arch, k.Bin, k.URI, k.SHA256, p.binary(), r.version, sum)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%s: %v are missing", krewFile, left)
	}
	return nil
}
