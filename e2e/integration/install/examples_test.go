// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
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
}
