// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tombolo-mcs/tombolo/manifests"
)

// Build describes the build of the command.
type Build struct {
	// Version is the tag of the release, such as "v1.2.3", or manifests.Development.
	Version string
	// Registry has the images of the release, such as "ghcr.io/tombolo-mcs".
	Registry string
}

// ImageFrom returns the complete name of an image of the release in a registry, by default that of the release. It is empty in a
// development build, for which no images were published.
func (b Build) ImageFrom(registry, name string) string {
	if b.Version == manifests.Development {
		return ""
	}
	return manifests.Release{Registry: cmp.Or(registry, b.Registry), Version: b.Version}.Image(name)
}

// errNoImages returns an error that names the flags for the images, for a development build.
func (b Build) errNoImages(flags []string) error {
	return fmt.Errorf("this command is a development build (%s), for which no images were published, so it cannot know their names: "+
		"pass %s with an image that the nodes can pull (\"make images\" builds it)", b.Version, strings.Join(flags, " and "))
}

// CompleteImages sets missing images to those of the release. In a development build, its error names the flags to set.
func (o *Options) CompleteImages() error {
	var missing []string
	for _, part := range o.Components() {
		if !part.wanted || *part.Given != "" {
			continue
		}
		if *part.Given = o.Build.ImageFrom(o.ImageRegistry, part.Image); *part.Given == "" {
			missing = append(missing, part.Flag)
		}
	}
	if len(missing) > 0 {
		return o.Build.errNoImages(missing)
	}
	return nil
}

// Mirrored returns an image of the project in another registry, with the same tag or digest. It is empty for any other image.
func Mirrored(image, registry, name string) string {
	if base := image[strings.LastIndex(image, "/")+1:]; nameOfImage(base) == name {
		return registry + "/" + base
	}
	return ""
}

// nameOfImage returns the last part of an image reference, without tag and digest.
func nameOfImage(reference string) string {
	reference = Repository(reference)
	return reference[strings.LastIndex(reference, "/")+1:]
}

// TagOf returns the tag of an image reference, empty if it has none.
func TagOf(reference string) string {
	reference, _, _ = strings.Cut(reference, "@")
	return strings.TrimPrefix(reference[len(Repository(reference)):], ":")
}

// Repository returns an image reference without tag and digest.
func Repository(reference string) string {
	reference, _, _ = strings.Cut(reference, "@")
	if i := strings.LastIndex(reference, ":"); i > strings.LastIndex(reference, "/") {
		return reference[:i]
	}
	return reference
}
