// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

type properties = map[string]hubv1alpha1.PropertyValue

// TestProperties: an agent shows the properties of its Member, and leaves the user's own alone. The hub refuses what no ClusterProperty
// can show.
//
// spec: A5
func TestProperties(t *testing.T) {
	t.Parallel()
	w, a, _ := newPair(t)
	a.Start(t)
	testProperties(t, w)
	own := &hubv1alpha1.Member{}
	lab.Must(t, w.HubClient.Get(t.Context(), key{Namespace: "member-a", Name: hubv1alpha1.MemberName}, own))
	for name, want := range map[string]string{
		"Region":                    "the name of a property is that of a ClusterProperty",
		"cluster.clusterset.k8s.io": "the name of a property is that of a ClusterProperty",
		"clusterset.k8s.io":         "the name of a property is that of a ClusterProperty",
		"a/b":                       "the name of a property is that of a ClusterProperty",
		strings.Repeat("x", 254):    "the name of a property is that of a ClusterProperty",
	} {
		changed := own.DeepCopy()
		changed.Spec.Properties = properties{name: "eu"}
		if err := w.HubClient.Update(t.Context(), changed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("property %.30s: %v, want: %s", name, err, want)
		}
	}
	for _, given := range []properties{{"region": ""}, {"region": hubv1alpha1.PropertyValue(strings.Repeat("x", 254))}, manyProperties(33)} {
		changed := own.DeepCopy()
		changed.Spec.Properties = given
		if err := w.HubClient.Update(t.Context(), changed); err == nil || !strings.Contains(err.Error(), "spec.properties") {
			t.Errorf("%d properties: %v", len(given), err)
		}
	}
}

func manyProperties(n int) properties {
	result := properties{}
	for i := range n {
		result[fmt.Sprintf("p%d", i)] = "x"
	}
	return result
}

// testProperties creates, changes, restores and deletes the properties of a, whose agent runs.
func testProperties(t *testing.T, w *env) {
	a := w.members["a"]
	own := &aboutv1beta1.ClusterProperty{ObjectMeta: metav1.ObjectMeta{Name: "tier"}, Spec: aboutv1beta1.ClusterPropertySpec{Value: "silver"}}
	lab.Must(t, a.Create(t.Context(), own))
	set := func(p properties) {
		t.Helper()
		w.ChangeMember(t, "a", func(s *hubv1alpha1.MemberSpec) { s.Properties = p })
	}
	shows := func(want map[string]string) {
		t.Helper()
		world.Eventually(t, func(ctx context.Context) error {
			list := &aboutv1beta1.ClusterPropertyList{}
			if err := a.List(ctx, list, client.MatchingLabels{clusterset.LabelManagedBy: clusterset.ManagedBy}); err != nil {
				return err
			}
			got := map[string]string{}
			for _, p := range list.Items {
				got[p.Name] = p.Spec.Value
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("ClusterProperties (-want +got):\n%s", diff)
			}
			return nil
		})
	}
	set(properties{"region": "eu", "tier": "gold"})
	shows(map[string]string{"region": "eu"})
	region := &aboutv1beta1.ClusterProperty{}
	world.Update(t, a, key{Name: "region"}, region, func() { region.Spec.Value = "mars" })
	shows(map[string]string{"region": "eu"})
	lab.Must(t, a.Delete(t.Context(), region))
	set(properties{"region": "us", "zone.example.com": "us-1", "tier": "gold"})
	shows(map[string]string{"region": "us", "zone.example.com": "us-1"})
	a.Event(t, key{Name: own.Name}, "PropertyObstructed", "another value")
	lab.Must(t, a.Delete(t.Context(), own))
	shows(map[string]string{"region": "us", "zone.example.com": "us-1", "tier": "gold"})
	set(nil)
	shows(map[string]string{})
}
