// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// containerdName is the annotation by which containerd and Docker name what they load.
	containerdName = "io.containerd.image.name"
	refName        = "org.opencontainers.image.ref.name"
)

// image is what an archive is built from.
type image struct {
	ref    string // the full name with the tag
	config v1.Config
	files  func(context.Context, v1.Platform) ([]file, error)
}

// file returns the name of the image's archive.
func (i image) file() string {
	name, _, _ := strings.Cut(path.Base(i.ref), ":")
	return name + ".tar"
}

// names returns the annotations by which runtimes name the image.
func (i image) names() map[string]string {
	return map[string]string{containerdName: i.ref, refName: i.ref[strings.LastIndex(i.ref, ":")+1:]}
}

// archive returns an OCI image layout of the image in a tar file. Its one top-level manifest is an index of all platforms:
// skopeo and podman accept no other.
func (i image) archive(ctx context.Context, r release, platforms []v1.Platform) ([]byte, error) {
	index := mutate.Annotations(empty.Index, i.config.Labels).(v1.ImageIndex)
	for _, p := range platforms {
		one, err := i.forPlatform(ctx, r, p)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{Platform: &p}})
	}
	dir, err := os.MkdirTemp("", "tombolo-images-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	top := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{Annotations: i.names()}})
	if _, err := layout.Write(dir, top); err != nil {
		return nil, err
	}
	var files []file
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path.Join(dir, name))
		files = append(files, regular(name, 0o644, content))
		return err
	})
	if err != nil {
		return nil, err
	}
	return pack(files, r.time)
}

// forPlatform returns the image of one platform: one layer and its configuration.
func (i image) forPlatform(ctx context.Context, r release, p v1.Platform) (v1.Image, error) {
	files, err := i.files(ctx, p)
	if err != nil {
		return nil, err
	}
	content, err := pack(files, r.time)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	date := v1.Time{Time: r.time}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	base, err = mutate.ConfigFile(base, &v1.ConfigFile{
		OS: p.OS, Architecture: p.Architecture, Created: date, Config: i.config, RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	base, err = mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: date, CreatedBy: "tools/images of " + r.version}})
	if err != nil {
		return nil, err
	}
	return mutate.Annotations(base, i.config.Labels).(v1.Image), nil
}

// file is a file of an image. Its name is relative to the root; that of a folder ends with a slash.
type file struct {
	tar.Header
	content []byte
}

// regular returns a regular file.
func regular(name string, mode int64, content []byte) file {
	return file{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}, content}
}

// pack returns the files as a tar archive, sorted, with the folders above them first.
func pack(files []file, date time.Time) ([]byte, error) {
	above := map[string]bool{}
	all := slices.SortedFunc(slices.Values(files), func(a, b file) int { return strings.Compare(a.Name, b.Name) })
	var folders []file
	for _, f := range all {
		for dir := path.Dir(strings.TrimSuffix(f.Name, "/")); dir != "." && !above[dir]; dir = path.Dir(dir) {
			above[dir] = true
			folders = append(folders, file{Header: tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}})
		}
	}
	slices.SortFunc(folders, func(a, b file) int { return strings.Compare(a.Name, b.Name) })
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range append(folders, all...) {
		f.ModTime, f.Format = date, tar.FormatUSTAR
		if err := w.WriteHeader(&f.Header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
