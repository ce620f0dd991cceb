// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The recipe: all that an image is. The archives are built from it, and the Dockerfile is written from it.

// image is one of the project's images.
type image struct {
	// name is that of the image, of its archive and of its one binary, which stands at the root.
	name string
	// stage is what docker build --target names.
	stage       string
	title       string
	description string
	// pkg is what go build is given, below the module's root.
	pkg string
	// versionVariable is the variable that the linker sets to the release's version.
	versionVariable string
	ports           []port
}

// port is one that the image's program listens on.
type port struct {
	number   int
	protocol string
	what     string
}

// String returns the port as EXPOSE and an image's configuration write it, as in 1053/udp.
func (p port) String() string { return fmt.Sprintf("%d/%s", p.number, p.protocol) }

// binary returns where the program stands in the image.
func (i image) binary() string { return "/" + i.name }

// user is whom the images run as: a number, so that runAsNonRoot can be checked, with a name in /etc/passwd. The
// manifests name the same.
const user = "65532:65532"

// platforms are what the archives hold.
func platforms() []platform { return []platform{{"linux", "amd64"}, {"linux", "arm64"}} }

// CoreDNS listens on 1053, which needs no right: 53 would need the capability NET_BIND_SERVICE on the file, and such a
// file does not start where allowPrivilegeEscalation is false, as the restricted Pod Security level wants it. The Service
// maps 53 to 1053; the Corefile says .:1053.
func images() []image {
	return []image{
		{
			name:            "tombolo-agent",
			stage:           "agent",
			title:           "Tombolo agent",
			description:     "Makes a Kubernetes cluster a member of a clusterset: publishes what it exports, imports what the others do",
			pkg:             "./cmd/tombolo-agent",
			versionVariable: "main.version",
			ports:           []port{{8080, "tcp", "metrics"}, {8081, "tcp", "/healthz and /readyz"}},
		},
		{
			name:            "tombolo-dns",
			stage:           "dns",
			title:           "CoreDNS with Tombolo's plugin clusterset",
			description:     "CoreDNS with the plugins that a cluster uses and clusterset, which answers for clusterset.local",
			pkg:             "./cmd/coredns",
			versionVariable: "github.com/coredns/coredns/coremain.GitCommit",
			ports: []port{
				{1053, "udp", "DNS, where no right is needed; the Service maps 53 to it"},
				{1053, "tcp", "the same for DNS over TCP"},
				{8080, "tcp", "/health"},
				{8181, "tcp", "/ready"},
				{9153, "tcp", "metrics"},
			},
		},
	}
}

// find returns the image of that name.
func find(all []image, name string) (image, error) {
	known := make([]string, 0, len(all))
	for _, i := range all {
		if i.name == name {
			return i, nil
		}
		known = append(known, i.name)
	}
	return image{}, fmt.Errorf("-image=%q: must be one of %s", name, strings.Join(known, ", "))
}

// label is one of the image's.
type label struct{ key, value string }

// labels returns the image's labels, sorted: https://github.com/opencontainers/image-spec/blob/main/annotations.md.
func labels(i image, r release) []label {
	const prefix = "org.opencontainers.image."
	all := []label{
		{prefix + "title", i.title},
		{prefix + "description", i.description},
		{prefix + "version", r.version},
		{prefix + "revision", r.revision},
		{prefix + "source", "https://github.com/tombolo-mcs/tombolo"},
		{prefix + "licenses", "Apache-2.0"},
	}
	slices.SortFunc(all, func(a, b label) int { return cmp.Compare(a.key, b.key) })
	return all
}
