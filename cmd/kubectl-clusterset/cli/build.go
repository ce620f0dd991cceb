// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
)

// Build describes the build of the command.
type Build struct {
	// Version is the tag of the release, such as "v1.2.3".
	Version string
	// Registry has the images of the release, such as "ghcr.io/tombolo-mcs". It is empty in a development build, which has no
	// images.
	Registry string
}

// image returns the complete name of an image of the release, empty in a development build.
func (b Build) image(name string) string {
	if b.Registry == "" {
		return ""
	}
	return b.Registry + "/" + name + ":" + b.Version
}

// errNoImages returns an error that names the flags for the images, for a development build.
func (b Build) errNoImages(flags []string) error {
	return fmt.Errorf("this command is a development build (%s), for which no images were released: pass %s with an image that the nodes can pull "+
		"(\"make images\" builds it)", b.Version, strings.Join(flags, " and "))
}

// completeImages sets missing images to those of the release. In a development build, its error names the flags to set.
func (o *runtimeOptions) completeImages() error {
	var missing []string
	for _, part := range o.components() {
		if !part.wanted || *part.given != "" {
			continue
		}
		if *part.given = o.build.image(part.image); *part.given == "" {
			missing = append(missing, part.flag)
		}
	}
	if len(missing) > 0 {
		return o.build.errNoImages(missing)
	}
	return nil
}
