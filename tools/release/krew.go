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
