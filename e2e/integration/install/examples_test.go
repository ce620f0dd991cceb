// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// exampleRow matches the name of an example in the table of examples/README.md.
var exampleRow = regexp.MustCompile("(?m)^\\| `([^`]+)` ")

// TestExamples: the table of examples/README.md lists each kustomization of examples. An API server takes them, where the kinds and the
// namespaces exist, and takes them again without a change.
func TestExamples(t *testing.T) {
	t.Parallel()
	run := kubectl(t, lab.Start(t, lab.Member("a")).Cluster("a"))
	for _, name := range []string{"crd/mcs", "crd/policy", "hub"} {
		run("apply", "-k", pathOf(t, name))
	}
	run("wait", "--for=condition=Established", "crd", "--all", "--timeout=3m")
	for _, namespace := range []string{"shop", "bank", "customers"} { // those of the user
		run("create", "namespace", namespace)
	}
	root := pathOf(t, "../examples")
	var examples []string
	lab.Must(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "kustomization.yaml" {
			return err
		}
		name, err := filepath.Rel(root, filepath.Dir(path))
		examples = append(examples, name)
		return err
	}))
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	lab.Must(t, err)
	var listed []string
	for _, row := range exampleRow.FindAllStringSubmatch(string(readme), -1) {
		listed = append(listed, row[1])
	}
	slices.Sort(listed)
	lab.Equal(t, "the table of examples/README.md differs from the folders", examples, listed)
	for _, name := range examples {
		applyTwice(t, run, filepath.Join(root, name))
	}
	takesDocuments(t, run)
}

// yamlBlock matches a block of YAML of a document.
var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// takesDocuments: an API server takes the NetworkPolicies and the kustomizations that documents show.
func takesDocuments(t *testing.T, run func(...string) string) {
	t.Helper()
	out := pathOf(t, "../out") // the kustomizations name those of manifests by relative paths
	lab.Must(t, os.MkdirAll(out, 0o755))
	taken := map[string]int{}
	for _, document := range []string{"networkpolicy.md", "operations.md"} {
		text, err := os.ReadFile(pathOf(t, "../docs/"+document))
		lab.Must(t, err)
		for _, block := range yamlBlock.FindAllSubmatch(text, -1) {
			folder, err := os.MkdirTemp(out, "document-")
			lab.Must(t, err)
			t.Cleanup(func() { os.RemoveAll(folder) })
			file := filepath.Join(folder, "kustomization.yaml")
			lab.Must(t, os.WriteFile(file, block[1], 0o600))
			switch { // other blocks are parts of objects
			case bytes.Contains(block[1], []byte("kind: Kustomization")):
				run("apply", "--dry-run=server", "-k", folder)
				taken["Kustomization"]++
			case bytes.Contains(block[1], []byte("kind: NetworkPolicy")):
				run("apply", "--dry-run=server", "-f", file)
				taken["NetworkPolicy"]++
			}
		}
	}
	lab.Equal(t, "the objects of documents are not those that are expected", map[string]int{"NetworkPolicy": 2, "Kustomization": 1}, taken)
}
