// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"strings"
	"testing"
)

// TestParseRelease: all images must have one registry and one version.
func TestParseRelease(t *testing.T) {
	for name, test := range map[string]struct{ images, err string }{
		"one release":      {"[{name: a, newName: r/o/a, newTag: v1}, {name: b, newName: r/o/b, newTag: v1}]", ""},
		"two versions":     {"[{name: a, newName: r/o/a, newTag: v1}, {name: b, newName: r/o/b, newTag: v2}]", "r/o/b:v2 must have the name b, and the registry"},
		"two registries":   {"[{name: a, newName: r/o/a, newTag: v1}, {name: b, newName: r/p/b, newTag: v1}]", "r/p/b:v1 must have"},
		"another name":     {"[{name: a, newName: r/o/x, newTag: v1}]", "r/o/x:v1 must have the name a"},
		"no version":       {"[{name: a, newName: r/o/a}]", "r/o/a: must have"},
		"no kustomization": {"5", "manifests/images/kustomization.yaml: error unmarshaling"},
	} {
		got, err := parseRelease([]byte("images: " + test.images))
		if test.err == "" && (err != nil || got != Release{Registry: "r/o", Version: "v1"}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%s: %v, want %s", name, err, test.err)
		}
	}
}
