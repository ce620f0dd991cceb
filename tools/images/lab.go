// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	"github.com/opencontainers/image-spec/specs-go/v1"
)

// labTime is what all in a lab's image is dated: it is of no release.
var labTime = time.Unix(0, 0).UTC()

// lab writes the archives of a lab's images into the folder, each where it is not there or not the same already, and those
// of the project's own images for the host's platform, as version "lab".
func (p project) lab(ctx context.Context, to string, out io.Writer) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	k := kitchen{root: p.root, host: debian{"/usr/bin"}, out: io.Discard, target: platform{"linux", runtime.GOARCH}}
	for _, i := range labImages() {
		files, err := i.files(ctx, k)
		if err != nil {
			return fmt.Errorf("%s: %w", i.ref, err)
		}
		slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
		if err := i.write(filepath.Join(to, i.archive), files, k.target, out); err != nil {
			return fmt.Errorf("%s: %w", i.ref, err)
		}
	}
	p.platforms = []platform{k.target}
	return p.build(ctx, to, given{version: "lab", revision: "lab", epoch: "0"}, out)
}

// write writes the archive unless it has these very files already.
func (i labImage) write(name string, files []file, target platform, out io.Writer) error {
	content, err := layer(files, labTime)
	if err != nil {
		return err
	}
	config := v1.Image{
		Created:  &labTime,
		Platform: v1.Platform{OS: target.os, Architecture: target.arch},
		Config:   i.config,
		RootFS:   v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(content)}},
		History:  []v1.History{{Created: &labTime, CreatedBy: i.title()}},
	}
	all := store{}
	top, err := i.index(all, config, content)
	if err != nil {
		return err
	}
	same, err := holds(name, top)
	if err != nil || same {
		return err
	}
	packed, err := all.layout(top, labTime)
	if err != nil {
		return err
	}
	if err := replace(name, packed); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s, %.1f MB\n", name, i.ref, megabytes(packed))
	return nil
}

// index adds the image's blobs and returns the index above them. The layer is not compressed: the archive is imported on
// the machine that makes it, many times.
func (i labImage) index(all store, config v1.Image, content []byte) (v1.Index, error) {
	described, err := all.addJSON(v1.MediaTypeImageConfig, config)
	if err != nil {
		return v1.Index{}, err
	}
	manifest, err := all.addJSON(v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageManifest,
		Config:    described,
		Layers:    []v1.Descriptor{all.add(v1.MediaTypeImageLayer, content)},
	})
	if err != nil {
		return v1.Index{}, err
	}
	manifest.Platform = &v1.Platform{OS: config.OS, Architecture: config.Architecture}
	manifest.Annotations = map[string]string{
		v1.AnnotationRefName: i.ref[strings.LastIndex(i.ref, ":")+1:],
		containerdName:       i.ref,
	}
	return v1.Index{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageIndex,
		Manifests: []v1.Descriptor{manifest},
	}, nil
}

// holds tells whether an archive is there that has this index, and so, by its digests, this image. Archives are replaced in
// one step: none is half written.
func holds(name string, index v1.Index) (bool, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	want, err := json.Marshal(index)
	if err != nil {
		return false, errors.Join(err, f.Close())
	}
	got, err := indexIn(f)
	// A file that cannot be read as an archive is none of ours, and is replaced.
	return err == nil && bytes.Equal(got, want), f.Close()
}

// indexIn returns the index of an image layout.
func indexIn(archive io.Reader) ([]byte, error) {
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if err != nil {
			return nil, err
		}
		if h.Name == v1.ImageIndexFile {
			return io.ReadAll(r)
		}
	}
}
