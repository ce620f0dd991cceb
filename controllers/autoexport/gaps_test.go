// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package autoexport

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: P3
func TestGaps(t *testing.T) {
	t.Parallel()
	labelled := map[string]string{clusterset.LabelAutoExport: "true"}
	type services = []*corev1.Service
	type exports = []*mcsv1beta1.ServiceExport
	external := func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }
	cases := map[string]struct {
		labels   map[string]string
		services services
		exports  exports
		limit    int
		want     []string
	}{
		"no label":                      {services: services{service("web", "", 1)}},
		"without the flag":              {services: services{service("web", "true", 1), service("db", "true", 2)}, want: []string{"db Disabled ", "web Disabled "}},
		"without it, of the Namespace":  {labels: labelled, services: services{service("web", "", 1)}, want: []string{"web Disabled "}},
		"without it, exported before":   {services: services{service("web", "true", 1)}, exports: exports{ours("web")}},
		"exported by a user":            {services: services{service("web", "true", 1)}, exports: exports{ofUser("web")}},
		"excluded":                      {labels: labelled, services: services{service("web", "false", 1)}, limit: 1},
		"beyond the limit":              {labels: labelled, services: services{service("b", "", 2), service("a", "", 1), service("c", "", 3)}, limit: 1, want: []string{"a Pending ", "b BeyondLimit ", "c BeyondLimit "}},
		"the limit is reached":          {services: services{service("a", "true", 1), service("b", "true", 2)}, exports: exports{ours("b")}, limit: 1, want: []string{"a BeyondLimit "}},
		"not created yet":               {services: services{service("web", "true", 1)}, limit: 1, want: []string{"web Pending "}},
		"a namespace that is not ours":  {services: services{service("web", "true", 1, in("kube-system"))}, limit: 1, want: []string{"web NotExportable Services of namespace kube-system are never exported. Move the Service to another namespace."}},
		"ExternalName":                  {services: services{service("web", "true", 1, external)}, want: []string{"web NotExportable Service web is of type ExternalName, which cannot be exported. Use ClusterIP, NodePort, LoadBalancer or a headless Service."}},
		"ExternalName, exported":        {services: services{service("web", "true", 1, external)}, exports: exports{ofUser("web")}},
		"ExternalName of the Namespace": {labels: labelled, services: services{service("web", "", 1, external)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, g := range Gaps(View{Cluster: "east", Labels: tc.labels, Services: tc.services, Exports: tc.exports, Limit: tc.limit}) {
				got = append(got, g.Service.Name+" "+string(g.Reason)+" "+g.Obstacle)
			}
			check.Equal(t, "gaps", tc.want, got)
		})
	}
}
