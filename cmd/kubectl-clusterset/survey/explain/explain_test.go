// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/explain"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/surveytest"
	"github.com/tombolo-mcs/tombolo/e2e/framework/golden"
	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestExplain compares a whole explanation. go test ./cmd/kubectl-clusterset/survey/explain -update writes the file again.
//
// spec: R1, R2, R3, R8, A1
func TestExplain(t *testing.T) {
	t.Parallel()
	r := &surveytest.Records{}
	for _, id := range []clusterset.ClusterID{"east", "mid", "north", "west"} {
		r.Member(id)
	}
	r.Beat("east", "v1", hubv1alpha1.PublicationComplete, time.Second)
	r.Beat("west", "v1", hubv1alpha1.PublicationComplete, time.Minute)
	h2c := surveytest.Port("grpc", 90)
	h2c.AppProtocol = "kubernetes.io/h2c"
	r.Export("west", "shop/web", 48, surveytest.Port("http", 80), surveytest.Port("grpc", 90))
	r.Serve("west", "shop/web", 2, 1)
	east := r.Export("east", "shop/web", 24, surveytest.Port("http", 8080), h2c, surveytest.Port("admin", 99))
	east.Spec.ExportedAt = metav1.NewTime(surveytest.Now.Add(-1000 * time.Hour))
	east.Spec.TrafficDistribution = "PreferClose"
	east.Spec.IPFamilies = []hubv1alpha1.IPFamily{"IPv6", "IPv4"}
	r.Serve("east", "shop/web", 1, 0)
	mid := r.Export("mid", "shop/web", 2, surveytest.Port("www", 80))
	mid.Spec.Labels = map[string]hubv1alpha1.LabelValue{"team": "shop"}
	mid.Spec.Inactive, mid.Spec.GrantedTo = true, &hubv1alpha1.GrantedTo{Clusters: []hubv1alpha1.GrantedCluster{"north", "east", "zz"}}
	r.Export("north", "shop/web", 2, surveytest.Port("http", 80)).Spec.Labels = map[string]hubv1alpha1.LabelValue{"kubernetes.io/x": "y"}
	explanation, ok := explain.Service(r.Hub(t), surveytest.Key("shop/web"))
	if !ok {
		t.Fatal("it is not known")
	}
	got, err := json.MarshalIndent(explanation, "", "  ")
	check.Must(t, err)
	golden.Check(t, "explanation.json", string(got)+"\n")
}

func TestExplainNothing(t *testing.T) {
	t.Parallel()
	r := &surveytest.Records{}
	r.Member("north")
	r.Export("north", "shop/refused", 2, surveytest.Port("http", 80)).Spec.Labels = map[string]hubv1alpha1.LabelValue{"kubernetes.io/x": "y"}
	h := r.Hub(t)
	if got, ok := explain.Service(h, surveytest.Key("shop/web")); ok {
		t.Errorf("of a service that no cluster exports it explains %+v", got)
	}
	got, ok := explain.Service(h, surveytest.Key("shop/refused"))
	want := []string{`record member-north/shop.refused on the hub is refused: label "kubernetes.io/x" is illegal or reserved`}
	check.Equal(t, "it is known", true, ok)
	check.Equal(t, "refused", want, got.Refused)
}

func TestSimilar(t *testing.T) {
	t.Parallel()
	var known []clusterset.ServiceKey
	for _, text := range []string{"shop/a", "shop/web-2", "shop/web", "shop/b", "b/web", "a/web", "a/else", "shop/c", "shop/d", "shop/we"} {
		known = append(known, surveytest.Key(text))
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
			for _, k := range explain.Similar(surveytest.Key(test.key), known) {
				got = append(got, k.String())
			}
			check.Equal(t, fmt.Sprintf("similar to %s", test.key), test.want, got)
		})
	}
}
