// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// fake makes the files of a release as build does, of binaries that are none.
func fake(t *testing.T) release {
	t.Helper()
	r := release{root: "../..", out: t.TempDir(), version: "v1.2.3", time: time.Unix(0, 0)}
	sources := t.TempDir()
	for _, p := range platforms() {
		put(t, sources, p.binary(), p.os+p.arch)
		put(t, sources, license, "free")
		must(t, r.pack(p.archive(), filepath.Join(sources, p.binary()), filepath.Join(sources, license)))
		put(t, r.out, p.bill(), `{"bomFormat":"CycloneDX","metadata":{"component":{"name":"github.com/tombolo-mcs/tombolo","version":"v1.2.3"}},
"components":[{"name":"k8s.io/client-go"}]}`)
	}
	sums, err := r.sums(platforms())
	must(t, err)
	put(t, r.out, checksums, sums)
	manifest, err := r.krewManifest()
	must(t, err)
	put(t, r.out, krewFile, manifest)
	return r
}

func put(t *testing.T, folder, name, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
}

// TestLinked: the linker sets variables that the plugin has. It says nothing of those that do not exist.
func TestLinked(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(filepath.Join("..", "..", "cmd", program, "main.go"))
	must(t, err)
	linked := release{version: "v1.2.3", registry: "ghcr.io/tombolo-mcs"}.linked()
	if want := "-s -w -X main.version=v1.2.3 -X main.registry=ghcr.io/tombolo-mcs"; linked != want {
		t.Errorf("the linker's flags are %q, want %q", linked, want)
	}
	for _, set := range regexp.MustCompile(`-X main\.(\w+)=`).FindAllStringSubmatch(linked, -1) {
		if !regexp.MustCompile(`(?m)^\t` + set[1] + ` += "`).Match(source) {
			t.Errorf("cmd/%s has no variable %s", program, set[1])
		}
	}
}

// TestCheck: what build makes passes, and each fault is found.
func TestCheck(t *testing.T) {
	t.Parallel()
	first, last := platforms()[0], platforms()[5]
	for name, test := range map[string]struct {
		file     string            // what is replaced in which file; empty: nothing
		old, new string            //
		repack   map[string]string // files for the first archive instead of its own
		want     string            // a part of the error
	}{
		"nothing":                {},
		"another archive":        {file: last.archive(), old: "", new: "x", want: "checksums.txt is"},
		"another bill":           {file: first.bill(), old: "CycloneDX", new: "SPDX", want: first.bill() + ": the format is \"SPDX\""},
		"a bill of something":    {file: first.bill(), old: "tombolo-mcs/tombolo", new: "other/other", want: "it is the bill of github.com/other/other v1.2.3"},
		"a bill of nothing":      {file: first.bill(), old: "client-go", new: "api", want: "client-go is not among the components"},
		"another sum":            {file: checksums, old: first.archive(), new: "other", want: "checksums.txt is"},
		"no license":             {repack: map[string]string{"kubectl-clusterset": "x"}, want: "it holds [kubectl-clusterset 755] instead of"},
		"an empty binary":        {repack: map[string]string{"kubectl-clusterset": "", license: "free"}, want: "kubectl-clusterset is empty"},
		"another program":        {repack: map[string]string{"kubectl": "x", license: "free"}, want: "it holds [LICENSE 644 kubectl 755] instead of"},
		"krew: another version":  {file: krewFile, old: "version: v1.2.3", new: "version: v1.2.4", want: "it is of version v1.2.4, not v1.2.3"},
		"krew: another tag":      {file: krewFile, old: "download/v1.2.3", new: "download/v1.2.4", want: "clusterset.yaml: linux/amd64: kubectl-clusterset in https"},
		"krew: another sum":      {file: krewFile, old: "sha256: ", new: "sha256: 0", want: "clusterset.yaml: linux/amd64: kubectl-clusterset in https"},
		"krew: another binary":   {file: krewFile, old: "bin: kubectl-clusterset", new: "bin: kubectl", want: "clusterset.yaml: linux/amd64: kubectl in https"},
		"krew: a platform twice": {file: krewFile, old: "arch: arm64", new: "arch: amd64", want: "linux/amd64 is none of the platforms, or there twice"},
		"krew: another name":     {file: krewFile, old: "name: clusterset", new: "name: tombolo", want: "so it is not found as"},
		"krew: unknown field":    {file: krewFile, old: "homepage:", new: "page:", want: `unknown field "page"`},
		"krew: a long text":      {file: krewFile, old: "shortDescription: ", new: "shortDescription: " + strings.Repeat("x", 50), want: "krew wants 1 to 50"},
		"krew: another kind":     {file: krewFile, old: "kind: Plugin", new: "kind: Plug", want: "it is a Plug of"},
		"krew: no homepage":      {file: krewFile, old: "homepage: https://github.com/tombolo-mcs/tombolo", new: `homepage: ""`, want: "homepage or description is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := fake(t)
			if test.file != "" {
				text, err := os.ReadFile(filepath.Join(r.out, test.file))
				must(t, err)
				put(t, r.out, test.file, strings.Replace(string(text), test.old, test.new, 1))
			}
			if test.repack != nil {
				repack(t, r, first, test.repack)
			}
			err := r.check(platforms())
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("check: %v; it should say %q", err, test.want)
			}
		})
	}
}

// repack makes an archive of other files, sorted by their names.
func repack(t *testing.T, r release, p platform, files map[string]string) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		put(t, folder, name, text)
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*"))
	must(t, err)
	must(t, r.pack(p.archive(), paths...))
}

// TestPack: the same files give the same bytes.
func TestPack(t *testing.T) {
	t.Parallel()
	one, err := fake(t).sums(platforms())
	must(t, err)
	if other, err := fake(t).sums(platforms()); one != other || err != nil {
		t.Errorf("two archives of the same files differ, %v", err)
	}
}

// TestMissing: a platform that the manifest for krew lacks.
func TestMissing(t *testing.T) {
	t.Parallel()
	err := fake(t).checkKrew(append(platforms(), platform{"plan9", "amd64"}))
	if want := "clusterset.yaml: [{plan9 amd64}] are missing"; err == nil || err.Error() != want {
		t.Errorf("check: %v instead of %s", err, want)
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
	if !found["sigs.k8s.io/yaml"] || !found["std"] {
		t.Errorf("the bill is\n%s", text)
	}
	if again, err := billOf(self, "v1.2.3"); !bytes.Equal(again, text) || err != nil {
		t.Errorf("a second bill differs, %v", err)
	}
}

// TestCommand: a wrong command line is refused with the reason.
func TestCommand(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"usage: release build | check [flags]":           nil,
		`unknown command "fly": it is build or check`:    {"fly"},
		"-version=1.2: must be as v1.2.3 or v1.2.3-rc.1": {"check", "-version=1.2"},
	} {
		if err := run(t.Context(), args); err == nil || err.Error() != want {
			t.Errorf("release %v: %v instead of %s", args, err, want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
