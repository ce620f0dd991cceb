// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// TestCompare: a dry run of the client says unchanged only if the existing object has every desired field.
func TestCompare(t *testing.T) {
	t.Parallel()
	const existing = `{metadata: {name: web, labels: {a: "1", b: "2"}}, spec: {ports: [{port: 80, protocol: TCP}], paused: false}}`
	for name, test := range map[string]struct {
		existing, desired string
		want              Outcome
	}{
		"no object":           {"", `{metadata: {name: web}}`, Created},
		"the same":            {existing, existing, Unchanged},
		"fields of others":    {existing, `{metadata: {labels: {a: "1"}}, spec: {ports: [{port: 80}]}}`, Unchanged},
		"another label":       {existing, `{metadata: {labels: {a: "2"}}}`, Configured},
		"a new label":         {existing, `{metadata: {labels: {c: ""}}}`, Configured},
		"another element":     {existing, `{spec: {ports: [{port: 81}]}}`, Configured},
		"one element more":    {existing, `{spec: {ports: [{port: 80}, {port: 81}]}}`, Configured},
		"one element less":    {existing, `{spec: {ports: []}}`, Configured},
		"an absent list":      {existing, `{spec: {args: []}}`, Unchanged},
		"an absent map":       {existing, `{spec: {selector: {}}}`, Unchanged},
		"a map for a text":    {existing, `{spec: {paused: {a: b}}}`, Configured},
		"false is not absent": {existing, `{spec: {paused: true}}`, Configured},
	} {
		var before *unstructured.Unstructured
		if test.existing != "" {
			before = parse(t, test.existing)
		}
		check.Equal(t, name, test.want, compare(before, parse(t, test.desired)))
	}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{}
	check.Must(t, yaml.Unmarshal([]byte(text), &object))
	return &unstructured.Unstructured{Object: object}
}
