// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
)

// dockerfile is filled with what the recipe says. The stage of an image takes its files from this very tool, so both ways
// of building make the same ones.
var dockerfile = template.Must(template.New("Dockerfile").Parse(`# Copyright The Tombolo Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Written by "make generate" from tools/images/recipe.go: change it there. For Docker with BuildKit, and Podman:
#
#     docker build --target agent --build-arg VERSION=v1.2.3 --build-arg REVISION="$(git rev-parse HEAD)" -t tombolo-agent .
#
# --platform=linux/amd64,linux/arm64 builds for both without emulation. "make images" builds the same images without a daemon.

ARG VERSION=devel
ARG REVISION=unknown

FROM --platform=$BUILDPLATFORM golang:{{.Go}} AS build
WORKDIR /src
COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG VERSION
{{range .Images}}
FROM build AS {{.Stage}}-files
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go -C tools/images run . files -image={{.Name}} -platform="$TARGETOS/$TARGETARCH" -version="$VERSION" -out=/image

# {{.Title}}
FROM scratch AS {{.Stage}}
ARG VERSION
ARG REVISION
COPY --from={{.Stage}}-files /image /
WORKDIR /
LABEL {{.Labels}}
{{- range .Ports}}
# {{.What}}
EXPOSE {{.}}
{{- end}}
USER {{.User}}
ENTRYPOINT ["{{.Binary}}"]
{{end}}`))

// stage is what the template is told of an image.
type stage struct {
	Name, Stage, Title, Labels, User, Binary string
	Ports                                    []exposed
}

type exposed struct {
	port
	What string
}

// dockerfileOf returns the Dockerfile of the images, to be built with the given version of Go.
func dockerfileOf(all []image, goVersion string) (string, error) {
	stages := make([]stage, 0, len(all))
	for _, i := range all {
		s := stage{Name: i.name, Stage: i.stage, Title: i.title, User: user, Binary: i.binary()}
		var lines []string
		for _, l := range labels(i, release{version: "$VERSION", revision: "$REVISION"}) {
			lines = append(lines, fmt.Sprintf("%s=%q", l.key, l.value))
		}
		s.Labels = strings.Join(lines, " \\\n    ")
		for _, p := range i.ports {
			s.Ports = append(s.Ports, exposed{p, p.what})
		}
		stages = append(stages, s)
	}
	var b strings.Builder
	err := dockerfile.Execute(&b, map[string]any{"Go": goVersion, "Images": stages})
	return b.String(), err
}

var goDirective = regexp.MustCompile(`(?m)^go (\d+\.\d+)`)

// goVersionOf returns the version of Go, as in 1.26, that the module at root asks for.
func goVersionOf(root string) (string, error) {
	name := filepath.Join(root, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("%w: state the module's root with -root", err)
	}
	found := goDirective.FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("%s: there is no line \"go VERSION\"", name)
	}
	return string(found[1]), nil
}
