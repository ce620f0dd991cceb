// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// The names of the images, in any registry.
const (
	AgentImageName   = "tombolo-agent"
	DNSImageName     = "tombolo-dns"
	GatewayImageName = "tombolo-gateway"
)

// Development is the version of a clone, for which no images are published.
const Development = "dev"

// Release is what the names of a release's images have in common.
type Release struct {
	// Registry is the registry with the organisation, such as "ghcr.io/tombolo-mcs".
	Registry string
	// Version is the tag of the release, such as "v1.2.3", or Development.
	Version string
}

// Image returns the complete name of an image.
func (r Release) Image(name string) string { return r.Registry + "/" + name + ":" + r.Version }

// imagesFile has the registry and the version of all images.
const imagesFile = "images/kustomization.yaml"

// CurrentRelease returns the release of these manifests.
func CurrentRelease() (Release, error) {
	text, err := files.ReadFile(imagesFile)
	if err != nil {
		return Release{}, err
	}
	return parseRelease(text)
}

// parseRelease returns the release that the kustomization of the images names.
func parseRelease(text []byte) (Release, error) {
	var kustomization types.Kustomization
	if err := yaml.UnmarshalStrict(text, &kustomization); err != nil {
		return Release{}, fmt.Errorf("manifests/%s: %w", imagesFile, err)
	}
	var found Release
	for _, image := range kustomization.Images {
		registry, isNamed := strings.CutSuffix(image.NewName, "/"+image.Name)
		this := Release{Registry: registry, Version: image.NewTag}
		if !isNamed || this.Version == "" || found != (Release{}) && this != found {
			return Release{}, fmt.Errorf("manifests/%s: %s:%s must have the name %s, and the registry and the version of the other images",
				imagesFile, image.NewName, image.NewTag, image.Name)
		}
		found = this
	}
	return found, nil
}
