// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	"github.com/opencontainers/image-spec/specs-go/v1"
)

// containerdName is the annotation by which containerd and Docker name what they load.
const containerdName = "io.containerd.image.name"

// program is what was compiled for a platform.
type program struct {
	platform platform
	content  []byte
}

// archive returns the image as an OCI image layout in a tar archive: one index of all platforms. Its name is
// repository/name:version. Everything in it is dated and ordered, so the same programs give the same bytes.
func archive(i image, r release, repository string, programs []program) ([]byte, error) {
	all := store{}
	index := v1.Index{
		Versioned:   specs.Versioned{SchemaVersion: 2},
		MediaType:   v1.MediaTypeImageIndex,
		Annotations: labelMap(i, r),
	}
	for _, p := range programs {
		descriptor, err := all.addManifest(i, r, p)
		if err != nil {
			return nil, err
		}
		index.Manifests = append(index.Manifests, descriptor)
	}
	inner, err := all.addJSON(v1.MediaTypeImageIndex, index)
	if err != nil {
		return nil, err
	}
	inner.Annotations = map[string]string{
		v1.AnnotationRefName: r.version,
		containerdName:       repository + "/" + i.name + ":" + r.version,
	}
	return all.layout(v1.Index{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageIndex,
		Manifests: []v1.Descriptor{inner},
	}, r.time)
}

// store holds the blobs of an archive.
type store map[digest.Digest][]byte

func (s store) add(mediaType string, content []byte) v1.Descriptor {
	d := digest.FromBytes(content)
	s[d] = content
	return v1.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(content))}
}

func (s store) addJSON(mediaType string, value any) (v1.Descriptor, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return s.add(mediaType, content), nil
}

// addManifest adds the image of one platform.
func (s store) addManifest(i image, r release, p program) (v1.Descriptor, error) {
	content, err := layer(filesOf(i, p.content), r.time)
	if err != nil {
		return v1.Descriptor{}, err
	}
	packed, err := compress(content)
	if err != nil {
		return v1.Descriptor{}, err
	}
	config, err := s.addJSON(v1.MediaTypeImageConfig, configOf(i, r, p.platform, digest.FromBytes(content)))
	if err != nil {
		return v1.Descriptor{}, err
	}
	descriptor, err := s.addJSON(v1.MediaTypeImageManifest, v1.Manifest{
		Versioned:   specs.Versioned{SchemaVersion: 2},
		MediaType:   v1.MediaTypeImageManifest,
		Config:      config,
		Layers:      []v1.Descriptor{s.add(v1.MediaTypeImageLayerGzip, packed)},
		Annotations: labelMap(i, r),
	})
	descriptor.Platform = &v1.Platform{OS: p.platform.os, Architecture: p.platform.arch}
	return descriptor, err
}

// configOf returns what a runtime is told of the image.
func configOf(i image, r release, p platform, content digest.Digest) v1.Image {
	ports := map[string]struct{}{}
	for _, port := range i.ports {
		ports[port.String()] = struct{}{}
	}
	return v1.Image{
		Created:  &r.time,
		Platform: v1.Platform{OS: p.os, Architecture: p.arch},
		Config: v1.ImageConfig{
			User:         user,
			ExposedPorts: ports,
			Entrypoint:   []string{i.binary()},
			WorkingDir:   "/",
			Labels:       labelMap(i, r),
		},
		RootFS:  v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{content}},
		History: []v1.History{{Created: &r.time, CreatedBy: "tools/images of " + r.version}},
	}
}

func labelMap(i image, r release) map[string]string {
	all := map[string]string{}
	for _, l := range labels(i, r) {
		all[l.key] = l.value
	}
	return all
}

// layout returns the blobs as a tar archive: https://github.com/opencontainers/image-spec/blob/main/image-layout.md.
func (s store) layout(index v1.Index, date time.Time) ([]byte, error) {
	top, err := json.Marshal(index)
	if err != nil {
		return nil, err
	}
	mark, err := json.Marshal(v1.ImageLayout{Version: v1.ImageLayoutVersion})
	if err != nil {
		return nil, err
	}
	files := []file{
		{"/" + v1.ImageLayoutFile, 0o644, mark},
		{"/" + v1.ImageIndexFile, 0o644, top},
	}
	for _, d := range slices.Sorted(maps.Keys(s)) {
		files = append(files, file{"/" + v1.ImageBlobsDir + "/" + d.Algorithm().String() + "/" + d.Encoded(), 0o644, s[d]})
	}
	return layer(files, date)
}

// compress returns the content packed by gzip, which every reader of images knows. The header has neither name nor date.
func compress(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
