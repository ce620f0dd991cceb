// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// TestNamespaceFirst: join applies the agent's Secret between the namespace and the other objects, in every profile,
// also with gateways.
func TestNamespaceFirst(t *testing.T) {
	for profile := range profiles {
		objects, err := (&runtimeOptions{profile: profile, gateway: true}).render(nil)
		check.Must(t, err)
		isNamespace := func(o *unstructured.Unstructured) bool { return o.GetKind() == "Namespace" }
		if !isNamespace(objects[0]) || slices.ContainsFunc(objects[1:], isNamespace) {
			t.Errorf("profile %s: the one namespace is not the first object", profile)
		}
	}
}
