// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// binaries are the paths of the programs that a lab runs.
type binaries struct {
	etcd, apiServer, controllerManager string
}

// findBinaries returns an error that says how to get them if one is missing.
func findBinaries(o Options) (binaries, error) {
	folders, err := assetFolders(o)
	if err != nil {
		return binaries{}, err
	}
	var b binaries
	var missing []string
	for _, want := range []struct {
		name string
		path *string
	}{
		{"etcd", &b.etcd},
		{"kube-apiserver", &b.apiServer},
		{"kube-controller-manager", &b.controllerManager},
	} {
		if *want.path = findExecutable(want.name, folders); *want.path == "" {
			missing = append(missing, want.name)
		}
	}
	if len(missing) > 0 {
		return binaries{}, fmt.Errorf("lab: %s not found in %s: run \"make assets\"", strings.Join(missing, ", "), strings.Join(folders, ", "))
	}
	return b, nil
}

// assetFolders returns the folders to search, the first match wins. KUBEBUILDER_ASSETS as filled by setup-envtest has no
// kube-controller-manager, so bin/ is searched as well.
func assetFolders(o Options) ([]string, error) {
	if o.Assets != "" {
		return []string{o.Assets}, nil
	}
	var folders []string
	if folder := os.Getenv("KUBEBUILDER_ASSETS"); folder != "" {
		folders = append(folders, folder)
	}
	folder, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("lab: finding the binaries: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			folders = append(folders, filepath.Join(folder, "bin"))
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			break
		}
		folder = parent
	}
	if len(folders) == 0 {
		return nil, fmt.Errorf("lab: no binaries: set KUBEBUILDER_ASSETS, or run below the root of the repository")
	}
	return folders, nil
}

func findExecutable(name string, folders []string) string {
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}
