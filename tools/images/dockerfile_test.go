// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// instructionsOf returns the instructions of each stage of the Dockerfile by the stage's name, the first of them FROM.
// BuildKit's parser and linter must accept it.
func instructionsOf(t *testing.T) map[string][]string {
	t.Helper()
	parsed, err := parser.Parse(bytes.NewReader(read(t, filepath.Join(productRoot, "Dockerfile"))))
	must(t, err)
	warn := func(name, _, _, message string, _ []parser.Range) { t.Errorf("%s: %s", name, message) }
	stages, _, err := instructions.Parse(parsed.AST, linter.New(&linter.Config{Warn: warn}))
	must(t, err)
	all := map[string][]string{}
	for _, s := range stages {
		lines := []string{s.OrigCmd + " " + s.BaseName}
		for _, command := range s.Commands {
			lines = append(lines, strings.Join(strings.Fields(fmt.Sprint(command)), " "))
		}
		all[s.Name] = lines
	}
	return all
}

// TestDockerfileAgreesWithArchives: both builds give images with the same base, files and configuration.
func TestDockerfileAgreesWithArchives(t *testing.T) {
	t.Parallel()
	all := instructionsOf(t)
	b := builder{programs: programs(), log: io.Discard}
	for n, i := range b.images(release{version: "$VERSION", revision: "$REVISION"}) {
		p := b.programs[n]
		files := `RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build go -C tools/images run . files -image=` + p.name +
			` -platform="$TARGETOS/$TARGETARCH" -version="$VERSION" -out=/image.tar && mkdir /image && tar -x -p -f /image.tar -C /image`
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(i.config.Labels)) {
			labels = append(labels, fmt.Sprintf("%s=%q", key, i.config.Labels[key]))
		}
		want := []string{"FROM scratch", "ARG VERSION", "ARG REVISION", "COPY --from=" + p.stage + "-files /image /", "WORKDIR " + i.config.WorkingDir, "LABEL " + strings.Join(labels, " ")}
		for _, port := range slices.Sorted(maps.Keys(i.config.ExposedPorts)) {
			want = append(want, "EXPOSE "+port)
		}
		want = append(want, "USER "+i.config.User, fmt.Sprintf("ENTRYPOINT [%q]", i.config.Entrypoint[0]))
		if got := all[p.stage]; !slices.Equal(got, want) {
			t.Errorf("stage %s is\n%s\nwant\n%s", p.stage, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if got, want := all[p.stage+"-files"], []string{"FROM build", files}; !slices.Equal(got, want) {
			t.Errorf("stage %s-files is\n%q\nwant\n%q", p.stage, got, want)
		}
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(read(t, filepath.Join(productRoot, "go.mod")))[1]
	if got := all["build"][0]; got != "FROM golang:"+string(version) {
		t.Errorf("the first stage is %s, and go.mod has go %s", got, version)
	}
}

// TestFiles: the command of the Dockerfile writes the files that the archives have.
func TestFiles(t *testing.T) {
	t.Parallel()
	b, out := tiny("", io.Discard), filepath.Join(t.TempDir(), "image.tar")
	args := []string{"files", "-root=" + filepath.Join("testdata", "tiny"), "-image=tiny", "-platform=linux/arm64", "-version=v1.2.3", "-out=" + out}
	must(t, b.run(t.Context(), args, ""))
	isPacked(t, bytes.NewReader(read(t, out)), 0)
}

// TestManifestsAgree: the manifests run the images as their user, on the ports of the recipe.
func TestManifestsAgree(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`(?:[pP]ort: |:)(\d{4,5})\b`)
	uid, gid, _ := strings.Cut(user, ":")
	manifests := map[string][]string{
		"tombolo-agent":   {"agent/workload/deployment.yaml"},
		"tombolo-gateway": {"gateway/deployment.yaml"},
		"tombolo-dns":     {"dns/plugin/deployment.yaml", "dns/plugin/Corefile"},
	}
	for _, p := range programs() {
		var text string
		for _, file := range manifests[p.name] {
			text += string(read(t, filepath.Join(productRoot, "manifests", file)))
		}
		for _, want := range []string{"image: " + p.name + "\n", "runAsUser: " + uid + "\n", "runAsGroup: " + gid + "\n", "runAsNonRoot: true\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%v lack %q", manifests[p.name], want)
			}
		}
		got, want := map[string]bool{}, map[string]bool{}
		for _, found := range named.FindAllStringSubmatch(text, -1) {
			got[found[1]] = true
		}
		for _, port := range p.ports {
			number, _, _ := strings.Cut(port, "/")
			want[number] = true
		}
		if !maps.Equal(got, want) {
			t.Errorf("%v name the ports %v, the recipe %v", manifests[p.name], got, want)
		}
	}
}
