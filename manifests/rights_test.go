// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// TestRightsAreNamed: no role of any kustomization has a wildcard or a verb that grants further rights.
func TestRightsAreNamed(t *testing.T) {
	roles := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "kustomization.yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || strings.Contains(string(text), "kind: Component") { // others include it; it cannot be rendered alone
			return err
		}
		for _, o := range must(t)(manifests.Render(filepath.ToSlash(filepath.Dir(path)))) {
			if o.GetKind() == "Role" || o.GetKind() == "ClusterRole" {
				roles++
			}
			for _, problem := range unnamed(t, o) {
				t.Errorf("%s: %s", path, problem)
			}
		}
		return nil
	})
	check.Must(t, err)
	if roles < 10 {
		t.Errorf("there are %d roles only", roles)
	}
}

// unnamed returns the problems of a role.
func unnamed(t *testing.T, o *unstructured.Unstructured) []string {
	t.Helper()
	if o.GetKind() != "Role" && o.GetKind() != "ClusterRole" {
		return nil
	}
	role := rbacv1.ClusterRole{} // with all fields of a Role
	check.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role))
	var problems []string
	for _, rule := range role.Rules {
		for _, word := range slices.Concat(rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames, rule.NonResourceURLs) {
			if strings.Contains(word, "*") || slices.Contains([]string{"bind", "escalate", "impersonate"}, word) {
				problems = append(problems, fmt.Sprintf("%s %s grants %q", o.GetKind(), role.Name, word))
			}
		}
	}
	return problems
}

func TestUnnamedIsNoticed(t *testing.T) {
	role := func(field, word string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": "ClusterRole", "metadata": map[string]any{"name": "r"}, "rules": []any{map[string]any{field: []any{"x", word}}},
		}}
	}
	for field, word := range map[string]string{"verbs": "*", "apiGroups": "*", "resources": "*/status", "nonResourceURLs": "/x/*"} {
		want := []string{fmt.Sprintf("ClusterRole r grants %q", word)}
		check.Equal(t, field, want, unnamed(t, role(field, word)))
	}
	check.Equal(t, "escalate", []string{`ClusterRole r grants "escalate"`}, unnamed(t, role("verbs", "escalate")))
}
