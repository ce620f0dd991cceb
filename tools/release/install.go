// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// charts are the names of the Helm charts.
var charts = []string{"tombolo", "tombolo-hub"}

// chartVersion returns the version of the charts, a semantic version without "v".
func (r release) chartVersion() string {
	if r.version == development {
		return "0.0.0-" + development
	}
	return strings.TrimPrefix(r.version, "v")
}

// packCharts makes the packages of the charts, which Helm can install and push to a registry.
func (r release) packCharts() error {
	for _, name := range charts {
		var entries []entry
		root := filepath.Join(r.root, "charts", name)
		err := fs.WalkDir(os.DirFS(root), ".", func(file string, found fs.DirEntry, err error) error {
			if err == nil && !found.IsDir() {
				entries = append(entries, entry{path.Join(name, file), filepath.Join(root, file), 0o644})
			}
			return err
		})
		if err != nil {
			return err
		}
		if err := r.pack(name+"-"+r.chartVersion()+".tgz", entries...); err != nil {
			return err
		}
	}
	return nil
}

// installs are the files with the objects of kustomizations, for kubectl apply.
var installs = []struct {
	file           string
	kustomizations []string
	only           string // the name of the only object that is taken of the last kustomization
}{
	{"install-hub.yaml", []string{"hub"}, ""},
	{"install-crds.yaml", []string{"crd/mcs", "crd"}, "clusterproperties.about.k8s.io"},
	{"install-member.yaml", []string{"overlays/quickstart"}, ""},
	{"install-member-production.yaml", []string{"overlays/production"}, ""},
	{"install-gateway.yaml", []string{"gateway"}, ""},
}

// renderInstalls writes these files.
func (r release) renderInstalls() error {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // as kubectl does
	for _, install := range installs {
		var documents []string
		for i, kustomization := range install.kustomizations {
			rendered, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), filepath.Join(r.root, "manifests", kustomization))
			if err != nil {
				return fmt.Errorf("render manifests/%s: %w", kustomization, err)
			}
			for _, object := range rendered.Resources() {
				if install.only != "" && i == len(install.kustomizations)-1 && object.GetName() != install.only {
					continue
				}
				text, err := object.AsYAML()
				if err != nil {
					return fmt.Errorf("%s: %w", object.CurId(), err)
				}
				documents = append(documents, string(text))
			}
		}
		if err := r.write(install.file, strings.Join(documents, "---\n")); err != nil {
			return err
		}
	}
	return nil
}

// krewFile is the manifest by which krew installs the plugin, as "kubectl krew install --manifest" takes it.
const krewFile = "clusterset.yaml"

// krewManifest returns the repository's .krew.yaml filled in, as krew-release-bot does it: addURIAndSha takes an address in
// which the tag is left open, and the tag.
func (r release) krewManifest() (string, error) {
	functions := template.FuncMap{"addURIAndSha": func(address, tag string) (string, error) {
		uri, err := fill("address", address, nil, map[string]string{"TagName": tag})
		if err != nil {
			return "", err
		}
		sum, err := r.digest(path.Base(uri))
		return fmt.Sprintf("uri: %s\n    sha256: %s", uri, sum), err
	}}
	text, err := os.ReadFile(filepath.Join(r.root, ".krew.yaml"))
	if err != nil {
		return "", err
	}
	return fill(".krew.yaml", string(text), functions, map[string]string{"TagName": r.version})
}

func fill(name, text string, functions template.FuncMap, values map[string]string) (string, error) {
	parsed, err := template.New(name).Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return "", err
	}
	var result strings.Builder
	if err := parsed.Execute(&result, values); err != nil {
		return "", err
	}
	return result.String(), nil
}
