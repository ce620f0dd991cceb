// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go/v1"
)

// verify reads an archive as a runtime does and returns the first thing about it that is not as it should be.
func verify(content []byte, i image, r release, wanted []platform) error {
	entries, err := readTar(bytes.NewReader(content))
	if err != nil {
		return err
	}
	layout := reader{entries: entries, used: map[digest.Digest]bool{}}
	var mark v1.ImageLayout
	if err := layout.file(v1.ImageLayoutFile, &mark); err != nil {
		return err
	}
	if mark.Version != v1.ImageLayoutVersion {
		return fmt.Errorf("%s: version %q, want %s", v1.ImageLayoutFile, mark.Version, v1.ImageLayoutVersion)
	}
	var top, index v1.Index
	if err := layout.file(v1.ImageIndexFile, &top); err != nil {
		return err
	}
	if len(top.Manifests) != 1 {
		return fmt.Errorf("%s: %d images, want one index: skopeo and podman take no other", v1.ImageIndexFile, len(top.Manifests))
	}
	if got := top.Manifests[0].Annotations; got[v1.AnnotationRefName] != r.version || !strings.HasSuffix(got[containerdName], "/"+i.name+":"+r.version) {
		return fmt.Errorf("%s: the image is called %q, want %s:%s; were the sources changed since it was built?", v1.ImageIndexFile, got, i.name, r.version)
	}
	if err := layout.json(top.Manifests[0], v1.MediaTypeImageIndex, &index); err != nil {
		return err
	}
	var found []platform
	for _, d := range index.Manifests {
		if d.Platform == nil {
			return fmt.Errorf("manifest %s names no platform", d.Digest)
		}
		p := platform{d.Platform.OS, d.Platform.Architecture}
		found = append(found, p)
		if err := layout.image(d, i, r, p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	if !slices.Equal(found, wanted) {
		return fmt.Errorf("platforms %v, want %v", found, wanted)
	}
	return layout.unused()
}

// entry is a file or folder in a tar archive.
type entry struct {
	header  *tar.Header
	content []byte
}

// readTar returns the entries of a tar archive by name.
func readTar(r io.Reader) (map[string]entry, error) {
	entries := map[string]entry{}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		if _, twice := entries[h.Name]; twice {
			return nil, fmt.Errorf("%s is there twice", h.Name)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		entries[h.Name] = entry{h, content}
	}
}

// reader reads an image layout and remembers which blobs were asked for.
type reader struct {
	entries map[string]entry
	used    map[digest.Digest]bool
}

func (l reader) file(name string, into any) error {
	e, ok := l.entries[name]
	if !ok {
		return fmt.Errorf("there is no %s", name)
	}
	return decode(name, e.content, into)
}

// decode is strict: what the format does not know is a mistake here.
func decode(name string, content []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// blob returns what a descriptor names, once it is what the descriptor says.
func (l reader) blob(d v1.Descriptor, mediaType string) ([]byte, error) {
	e, ok := l.entries[blobName(d.Digest)]
	switch {
	case d.MediaType != mediaType:
		return nil, fmt.Errorf("%s is %q, want %s", d.Digest, d.MediaType, mediaType)
	case !ok:
		return nil, fmt.Errorf("there is no blob %s", d.Digest)
	case d.Size != int64(len(e.content)):
		return nil, fmt.Errorf("blob %s has %d bytes, not %d", d.Digest, len(e.content), d.Size)
	case digest.FromBytes(e.content) != d.Digest:
		return nil, fmt.Errorf("blob %s is %s", d.Digest, digest.FromBytes(e.content))
	}
	l.used[d.Digest] = true
	return e.content, nil
}

func (l reader) json(d v1.Descriptor, mediaType string, into any) error {
	content, err := l.blob(d, mediaType)
	if err != nil {
		return err
	}
	return decode(d.Digest.String(), content, into)
}

// unused returns an error where the archive holds what no descriptor names.
func (l reader) unused() error {
	known := map[string]bool{v1.ImageLayoutFile: true, v1.ImageIndexFile: true}
	for d := range l.used {
		known[blobName(d)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(l.entries)) {
		if l.entries[name].header.Typeflag != tar.TypeDir && !known[name] {
			return fmt.Errorf("nothing names %s", name)
		}
	}
	return nil
}

func blobName(d digest.Digest) string {
	return v1.ImageBlobsDir + "/" + d.Algorithm().String() + "/" + d.Encoded()
}

// image verifies the image of one platform.
func (l reader) image(d v1.Descriptor, i image, r release, p platform) error {
	var manifest v1.Manifest
	if err := l.json(d, v1.MediaTypeImageManifest, &manifest); err != nil {
		return err
	}
	var config v1.Image
	if err := l.json(manifest.Config, v1.MediaTypeImageConfig, &config); err != nil {
		return err
	}
	if len(manifest.Layers) != 1 || len(config.RootFS.DiffIDs) != 1 {
		return fmt.Errorf("%d layers, %d of them in the configuration, want one", len(manifest.Layers), len(config.RootFS.DiffIDs))
	}
	packed, err := l.blob(manifest.Layers[0], v1.MediaTypeImageLayerGzip)
	if err != nil {
		return err
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	content, err := io.ReadAll(unpacked)
	if err != nil {
		return err
	}
	if got := digest.FromBytes(content); got != config.RootFS.DiffIDs[0] {
		return fmt.Errorf("the layer is %s, not %s as the configuration says", got, config.RootFS.DiffIDs[0])
	}
	if err := verifyConfig(config, i, r, p); err != nil {
		return err
	}
	return verifyLayer(content, i, r, p)
}
