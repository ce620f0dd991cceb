// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// fake makes the files of a release as build does, of binaries that are none, and without images.
func fake(t *testing.T) release {
	t.Helper()
	r := release{root: "../..", out: t.TempDir(), version: "v1.2.3", time: time.Unix(0, 0)}
	sources := t.TempDir()
	for _, p := range platforms() {
		put(t, sources, p.binary(), p.os+p.arch)
		put(t, sources, license, "free")
		must(t, r.pack(p.archive(),
			entry{p.binary(), filepath.Join(sources, p.binary()), 0o755}, entry{license, filepath.Join(sources, license), 0o644}))
		put(t, r.out, p.bill(), "a bill")
	}
	must(t, r.packCharts())
	must(t, r.renderInstalls())
	must(t, r.finish())
	return r
}

func put(t *testing.T, folder, name, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
}

// TestStamp: the version is written into each file that has it, and "dev" gives back the sources as they are.
func TestStamp(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	read := func(root string) map[string]string {
		all := map[string]string{}
		for _, s := range (release{}).stamps() {
			text, err := os.ReadFile(filepath.Join(root, s.file))
			must(t, err)
			all[s.file] = string(text)
		}
		return all
	}
	before := read(filepath.Join("..", ".."))
	for file, text := range before {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o750))
		put(t, root, file, text)
	}
	must(t, run(t.Context(), []string{"stamp", "-version=v1.2.3-rc.1", "-root=" + root}))
	after := read(root)
	for file, want := range map[string]string{
		"charts/tombolo/Chart.yaml":     "\nversion: 1.2.3-rc.1\nappVersion: v1.2.3-rc.1\n",
		"charts/tombolo-hub/Chart.yaml": "\nversion: 1.2.3-rc.1\nappVersion: v1.2.3-rc.1\n",
		imagesFile:                      "/tombolo-gateway, newTag: v1.2.3-rc.1}\n",

		"manifests/hub/kustomization.yaml":   "tombolo-mcs.io/version: v1.2.3-rc.1\n",
		"charts/tombolo-hub/files/crds.yaml": "tombolo-mcs.io/version: v1.2.3-rc.1\n",
	} {
		if !strings.Contains(after[file], want) {
			t.Errorf("%s has no %q:\n%s", file, want, after[file])
		}
	}
	if names := strings.Count(after[imagesFile], "newTag: v1.2.3-rc.1}"); names != 3 {
		t.Errorf("%d images are of the release, want 3", names)
	}
	must(t, run(t.Context(), []string{"stamp", "-version=dev", "-root=" + root}))
	if diff := cmp.Diff(before, read(root)); diff != "" && strings.Contains(before[imagesFile], "newTag: dev}") {
		t.Errorf("-before +after:\n%s", diff)
	}
	put(t, root, imagesFile, "images: []\n")
	err := run(t.Context(), []string{"stamp", "-version=v1.2.3", "-root=" + root})
	if err == nil || !strings.Contains(err.Error(), imagesFile+" has no line") {
		t.Errorf("%v for a file without a version", err)
	}
}

// TestStampedCopy: the copy has the sources of the commit with the version of the release, and the sources stay as they are.
func TestStampedCopy(t *testing.T) {
	t.Parallel()
	r := release{root: filepath.Join("..", ".."), version: "v0.0.0-copy"}
	copied, err := r.stampedCopy(t.Context())
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(copied) })
	r.root = copied
	names, registry, err := r.images()
	must(t, err)
	if !slices.Equal(names, []string{"tombolo-agent", "tombolo-dns", "tombolo-gateway"}) || !strings.Contains(registry, ".") {
		t.Errorf("the images are %v of %s", names, registry)
	}
	text, err := os.ReadFile(filepath.Join(copied, imagesFile))
	must(t, err)
	source, err := os.ReadFile(filepath.Join("..", "..", imagesFile))
	must(t, err)
	if !strings.Contains(string(text), "newTag: v0.0.0-copy}") || strings.Contains(string(source), "newTag: v0.0.0-copy}") {
		t.Errorf("the copy has\n%s\nthe sources\n%s", text, source)
	}
}

// TestInstalls: the files for kubectl have the objects that a member or a hub needs, with complete names of images.
func TestInstalls(t *testing.T) {
	t.Parallel()
	r := fake(t)
	for file, want := range map[string][]string{
		"install-hub.yaml":               {"name: members.hub.tombolo-mcs.io\n", "name: tokens.hub.tombolo-mcs.io\n"},
		"install-crds.yaml":              {"name: serviceexports.multicluster.x-k8s.io\n", "name: clusterproperties.about.k8s.io\n"},
		"install-member.yaml":            {"image: ghcr.io/tombolo-mcs/tombolo-agent:", "image: ghcr.io/tombolo-mcs/tombolo-dns:"},
		"install-member-production.yaml": {"image: ghcr.io/tombolo-mcs/tombolo-agent:", "kind: NetworkPolicy\n"},
		"install-gateway.yaml":           {"image: ghcr.io/tombolo-mcs/tombolo-gateway:"},
	} {
		text, err := os.ReadFile(filepath.Join(r.out, file))
		must(t, err)
		for _, part := range want {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %q", file, part)
			}
		}
		if file == "install-crds.yaml" && strings.Contains(string(text), "hub.tombolo-mcs.io") {
			t.Errorf("%s has kinds of the hub", file)
		}
	}
}

// TestChartPackages: a package has the files of the chart below the name of the chart, as Helm wants it.
func TestChartPackages(t *testing.T) {
	t.Parallel()
	r := fake(t)
	for _, name := range charts {
		found := packed(t, r, name+"-1.2.3.tgz")
		for _, file := range []string{"Chart.yaml", "values.yaml", "values.schema.json", "README.md", "templates/NOTES.txt"} {
			if !slices.ContainsFunc(found, func(entry string) bool { return strings.HasPrefix(entry, name+"/"+file+" ") }) {
				t.Errorf("%s has no %s: %v", name, file, found)
			}
		}
	}
}

// TestArchives: an archive holds the binary, which can be executed, and the license. The checksums are those of all files.
func TestArchives(t *testing.T) {
	t.Parallel()
	r := fake(t)
	sums, err := os.ReadFile(filepath.Join(r.out, checksums))
	must(t, err)
	files, err := os.ReadDir(r.out)
	must(t, err)
	if lines := strings.Count(string(sums), "\n"); lines != len(files)-2 { // not of themselves, and not of the manifest for krew
		t.Errorf("%d checksums of %d files:\n%s", lines, len(files), sums)
	}
	for _, p := range platforms() {
		text, err := os.ReadFile(filepath.Join(r.out, p.archive()))
		must(t, err)
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256(text), p.archive()); !strings.Contains(string(sums), line) {
			t.Errorf("the checksums lack %s", line)
		}
		want := []string{p.binary() + " 755 " + p.os + p.arch, license + " 644 free"}
		if got := packed(t, r, p.archive()); !slices.Equal(got, want) {
			t.Errorf("%s holds %s, want %s", p.archive(), got, want)
		}
	}
}

// packed returns the name, the mode and the text of each file in an archive.
func packed(t *testing.T, r release, archive string) (entries []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.out, archive))
	must(t, err)
	compressed, err := gzip.NewReader(bytes.NewReader(text))
	must(t, err)
	for contents := tar.NewReader(compressed); ; {
		header, err := contents.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		must(t, err)
		text, err := io.ReadAll(contents)
		must(t, err)
		entries = append(entries, fmt.Sprintf("%s %o %s", header.Name, header.Mode, text))
	}
}

// krewPlugin is what krew knows of a plugin (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/).
type krewPlugin struct {
	APIVersion, Kind string
	Metadata         struct{ Name string }
	Spec             struct {
		Version, Homepage, ShortDescription, Description string
		Platforms                                        []struct {
			Selector         struct{ MatchLabels map[string]string }
			URI, SHA256, Bin string
		}
	}
}

// TestKrew: krew would install each platform's archive.
func TestKrew(t *testing.T) {
	t.Parallel()
	r := fake(t)
	text, err := os.ReadFile(filepath.Join(r.out, krewFile))
	must(t, err)
	var plugin krewPlugin
	must(t, yaml.UnmarshalStrict(text, &plugin))
	s := plugin.Spec
	if plugin.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || plugin.Kind != "Plugin" || plugin.Metadata.Name != "clusterset" || s.Version != r.version {
		t.Errorf("the manifest is of %s %s %q %s", plugin.APIVersion, plugin.Kind, plugin.Metadata.Name, s.Version)
	}
	if n := len(s.ShortDescription); s.Homepage == "" || s.Description == "" || n == 0 || n > 50 {
		t.Errorf("homepage or description is missing, or the short one has %d characters: krew wants 1 to 50", n)
	}
	var found []platform
	for _, k := range s.Platforms {
		p := platform{k.Selector.MatchLabels["os"], k.Selector.MatchLabels["arch"]}
		found = append(found, p)
		sum, err := r.digest(p.archive())
		must(t, err)
		if k.Bin != p.binary() || k.SHA256 != sum || !strings.HasSuffix(k.URI, "/releases/download/v1.2.3/"+p.archive()) {
			t.Errorf("%v: %s in %s with SHA-256 %s", p, k.Bin, k.URI, k.SHA256)
		}
	}
	if !slices.Equal(found, platforms()) {
		t.Errorf("the platforms are %v, want %v", found, platforms())
	}
}

// TestPack: the same files give the same bytes.
func TestPack(t *testing.T) {
	t.Parallel()
	one, err := fake(t).sums()
	must(t, err)
	if other, err := fake(t).sums(); one != other || err != nil {
		t.Errorf("two archives of the same files differ, %v", err)
	}
}

// TestBill: the bill of this test's own binary names the module and what it was made of.
func TestBill(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	text, err := billOf(self, "v1.2.3")
	must(t, err)
	var b cyclonedx.BOM
	must(t, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&b))
	if c := b.Metadata.Component; c.Name != "github.com/tombolo-mcs/tombolo/tools/release" || c.Version != "v1.2.3" {
		t.Errorf("the bill is of %+v", c)
	}
	found := map[string]bool{}
	for _, c := range *b.Components {
		found[c.Name] = c.Version != ""
	}
	if !found["github.com/rs/zerolog"] || !found["std"] {
		t.Errorf("the bill is\n%s", text)
	}
	if again, err := billOf(self, "v1.2.3"); !bytes.Equal(again, text) || err != nil {
		t.Errorf("a second bill differs, %v", err)
	}
}

// TestVersion: a version that is no semantic one is refused.
func TestVersion(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"build -version=1.2":  "-version=1.2: must be as v1.2.3 or v1.2.3-rc.1",
		"stamp -version=v1.2": "-version=v1.2: must be as v1.2.3 or v1.2.3-rc.1",
		"build -version=dev":  "-version=dev: must be as v1.2.3 or v1.2.3-rc.1",
		"-version=v1.2.3":     "usage: release build | stamp [flags]",
	} {
		if err := run(t.Context(), strings.Fields(args)); err == nil || err.Error() != want {
			t.Errorf("%v instead of %s", err, want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
