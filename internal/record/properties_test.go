// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/record"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// spec: A5
func TestPropertiesOf(t *testing.T) {
	t.Parallel()
	type properties = map[string]hubv1alpha1.PropertyValue
	many, first := properties{}, map[string]string{}
	for i := range 40 {
		many[fmt.Sprintf("p%02d", i)] = "x"
		if i < 32 {
			first[fmt.Sprintf("p%02d", i)] = "x"
		}
	}
	for name, test := range map[string]struct {
		given properties
		want  map[string]string
	}{
		"none":                  {nil, map[string]string{}},
		"valid":                 {properties{"region": "eu", "zone.example.com": "eu 1/ä"}, map[string]string{"region": "eu", "zone.example.com": "eu 1/ä"}},
		"no DNS name":           {properties{"Region": "eu", "a/b": "x", "": "x", "tier": "gold"}, map[string]string{"tier": "gold"}},
		"who the cluster is":    {properties{"clusterset.k8s.io": "x", "cluster.clusterset.k8s.io": "x", "region.topology.k8s.io": "eu"}, map[string]string{"region.topology.k8s.io": "eu"}},
		"empty":                 {properties{"region": ""}, map[string]string{}},
		"the longest value":     {properties{"region": hubv1alpha1.PropertyValue(strings.Repeat("ä", 253))}, map[string]string{"region": strings.Repeat("ä", 253)}},
		"too long a value":      {properties{"region": hubv1alpha1.PropertyValue(strings.Repeat("x", 254))}, map[string]string{}},
		"too long a name":       {properties{strings.Repeat("x", 254): "eu"}, map[string]string{}},
		"more than are allowed": {many, first},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			member := &hubv1alpha1.Member{Spec: hubv1alpha1.MemberSpec{Properties: test.given}}
			check.Equal(t, "properties", test.want, record.PropertiesOf(member))
		})
	}
}
