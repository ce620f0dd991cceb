// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package properties

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: A5
func TestDecide(t *testing.T) {
	t.Parallel()
	property := func(name, value, manager string) aboutv1beta1.ClusterProperty {
		object := aboutv1beta1.ClusterProperty{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: aboutv1beta1.ClusterPropertySpec{Value: value}}
		if manager != "" {
			object.Labels = map[string]string{clusterset.LabelManagedBy: manager}
		}
		return object
	}
	ours := func(name, value string) aboutv1beta1.ClusterProperty {
		return property(name, value, clusterset.ManagedBy)
	}
	lost := property("region", "eu", "")
	lost.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: clusterset.FieldManager}}
	for name, test := range map[string]struct {
		properties       map[string]string
		existing         []aboutv1beta1.ClusterProperty
		want, obstructed []string
	}{
		"new":                                 {map[string]string{"tier": "gold", "region": "eu"}, nil, []string{"create region=eu", "create tier=gold"}, nil},
		"unchanged":                           {map[string]string{"region": "eu"}, []aboutv1beta1.ClusterProperty{ours("region", "eu")}, nil, nil},
		"changed":                             {map[string]string{"region": "us"}, []aboutv1beta1.ClusterProperty{ours("region", "eu")}, []string{"update region=us"}, nil},
		"removed":                             {nil, []aboutv1beta1.ClusterProperty{ours("region", "eu")}, []string{"delete region=eu"}, nil},
		"a user's own, of another value":      {map[string]string{"region": "eu"}, []aboutv1beta1.ClusterProperty{property("region", "us", "")}, nil, []string{"region"}},
		"a user's own, of the same value":     {map[string]string{"region": "eu"}, []aboutv1beta1.ClusterProperty{property("region", "eu", "")}, nil, nil},
		"another manager's":                   {map[string]string{"region": "eu"}, []aboutv1beta1.ClusterProperty{property("region", "us", "other")}, nil, []string{"region"}},
		"a user's own, of another name":       {nil, []aboutv1beta1.ClusterProperty{property("cluster.clusterset.k8s.io", "a", "")}, nil, nil},
		"the label is lost":                   {map[string]string{"region": "eu"}, []aboutv1beta1.ClusterProperty{lost}, []string{"update region=eu"}, nil},
		"the label is lost, and the property": {nil, []aboutv1beta1.ClusterProperty{lost}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes, obstructed := decide(test.properties, test.existing)
			var got, others []string
			for _, change := range changes {
				got = append(got, fmt.Sprintf("%s %s=%s", change.Verb, change.Object.Name, change.Object.Spec.Value))
			}
			for _, object := range obstructed {
				others = append(others, object.Name)
			}
			check.Equal(t, "changes", test.want, got)
			check.Equal(t, "obstructed", test.obstructed, others)
		})
	}
}
