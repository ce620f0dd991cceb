// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

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

// imageFrom returns the complete name of an image of the release in a registry, by default that of the release. It is empty in a
// development build, for which no images were published.
func (b Build) imageFrom(registry, name string) string {
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

// completeImages sets missing images to those of the release. In a development build, its error names the flags to set.
func (o *runtimeOptions) completeImages() error {
	var missing []string
	for _, part := range o.components() {
		if !part.wanted || *part.given != "" {
			continue
		}
		if *part.given = o.build.imageFrom(o.imageRegistry, part.image); *part.given == "" {
			missing = append(missing, part.flag)
		}
	}
	if len(missing) > 0 {
		return o.build.errNoImages(missing)
	}
	return nil
}

// mirrored returns an image of the project in another registry, with the same tag or digest. It is empty for any other image.
func mirrored(image, registry, name string) string {
	if base := image[strings.LastIndex(image, "/")+1:]; nameOfImage(base) == name {
		return registry + "/" + base
	}
	return ""
}

// nameOfImage returns the last part of an image reference, without tag and digest.
func nameOfImage(reference string) string {
	reference = repository(reference)
	return reference[strings.LastIndex(reference, "/")+1:]
}

// tagOf returns the tag of an image reference, empty if it has none.
func tagOf(reference string) string {
	reference, _, _ = strings.Cut(reference, "@")
	return strings.TrimPrefix(reference[len(repository(reference)):], ":")
}

// repository returns an image reference without tag and digest.
func repository(reference string) string {
	reference, _, _ = strings.Cut(reference, "@")
	if i := strings.LastIndex(reference, ":"); i > strings.LastIndex(reference, "/") {
		return reference[:i]
	}
	return reference
}
