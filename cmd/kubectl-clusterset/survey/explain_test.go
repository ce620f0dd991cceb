// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestExplain compares a whole explanation. go test ./cmd/kubectl-clusterset/survey -update writes the file again.
//
// spec: R1, R2, R3, R8, A1
func TestExplain(t *testing.T) {
	t.Parallel()
	r := &records{}
	for _, id := range []clusterset.ClusterID{"east", "mid", "north", "west"} {
		r.member(id)
	}
	r.beats("east", "v1", hubv1alpha1.PublicationComplete, time.Second)
	r.beats("west", "v1", hubv1alpha1.PublicationComplete, time.Minute)
	h2c := port("grpc", 90)
	h2c.AppProtocol = "kubernetes.io/h2c"
	r.exports("west", "shop/web", 48, port("http", 80), port("grpc", 90))
	r.serves("west", "shop/web", 2, 1)
	east := r.exports("east", "shop/web", 24, port("http", 8080), h2c, port("admin", 99))
	east.Spec.ExportedAt = metav1.NewTime(now.Add(-1000 * time.Hour))
	east.Spec.TrafficDistribution = "PreferClose"
	east.Spec.IPFamilies = []hubv1alpha1.IPFamily{"IPv6", "IPv4"}
	r.serves("east", "shop/web", 1, 0)
	mid := r.exports("mid", "shop/web", 2, port("www", 80))
	mid.Spec.Labels = map[string]hubv1alpha1.LabelValue{"team": "shop"}
	mid.Spec.Inactive, mid.Spec.GrantedTo = true, &hubv1alpha1.GrantedTo{Clusters: []hubv1alpha1.GrantedCluster{"north", "east", "zz"}}
	r.exports("north", "shop/web", 2, port("http", 80)).Spec.Labels = map[string]hubv1alpha1.LabelValue{"kubernetes.io/x": "y"}
	explanation, ok := r.hub(t).Explain(keyOf("shop/web"))
	if !ok {
		t.Fatal("it is not known")
	}
	checkGolden(t, "explanation.json", explanation)
}

func TestExplainNothing(t *testing.T) {
	t.Parallel()
	r := &records{}
	r.member("north")
	r.exports("north", "shop/refused", 2, port("http", 80)).Spec.Labels = map[string]hubv1alpha1.LabelValue{"kubernetes.io/x": "y"}
	h := r.hub(t)
	if got, ok := h.Explain(keyOf("shop/web")); ok {
		t.Errorf("of a service that no cluster exports it explains %+v", got)
	}
	got, ok := h.Explain(keyOf("shop/refused"))
	want := []string{`record member-north/shop.refused on the hub is refused: label "kubernetes.io/x" is illegal or reserved`}
	check.Equal(t, "it is known", true, ok)
	check.Equal(t, "refused", want, got.Refused)
}

func TestSimilar(t *testing.T) {
	t.Parallel()
	var known []clusterset.ServiceKey
	for _, text := range []string{"shop/a", "shop/web-2", "shop/web", "shop/b", "b/web", "a/web", "a/else", "shop/c", "shop/d", "shop/we"} {
		known = append(known, keyOf(text))
	}
	for name, test := range map[string]struct {
		key  string
		want []string
	}{
		"the same name first, then names that contain it or are in it, then the namespace's": {"shop/web", []string{"a/web", "b/web", "shop/we", "shop/web-2", "shop/a"}},
		"another namespace has nothing to do with it":                                        {"b/x", []string{"b/web"}},
		"nothing": {"c/x", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, k := range survey.Similar(keyOf(test.key), known) {
				got = append(got, k.String())
			}
			check.Equal(t, fmt.Sprintf("similar to %s", test.key), test.want, got)
		})
	}
}
