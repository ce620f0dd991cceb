// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

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

// parseKrew returns the plugin that a manifest describes. A field that krew does not know is an error.
func parseKrew(text []byte) (krewPlugin, error) {
	var plugin krewPlugin
	if err := yaml.UnmarshalStrict(text, &plugin); err != nil {
		return plugin, err
	}
	s := plugin.Spec
	switch {
	case plugin.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || plugin.Kind != "Plugin":
		return plugin, fmt.Errorf("it is a %s of %s", plugin.Kind, plugin.APIVersion)
	case plugin.Metadata.Name != "clusterset":
		return plugin, fmt.Errorf("the plugin is called %q, so it is not found as \"kubectl clusterset\"", plugin.Metadata.Name)
	case s.Homepage == "" || s.Description == "":
		return plugin, fmt.Errorf("homepage or description is missing")
	case s.ShortDescription == "" || len(s.ShortDescription) > 50:
		return plugin, fmt.Errorf("the short description has %d characters: krew wants 1 to 50", len(s.ShortDescription))
	}
	return plugin, nil
}
