// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package autoexport

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
)

// service returns a Service of namespace shop that is created at a second. label is empty for none.
func service(name, label string, second int64, changes ...func(*corev1.Service)) *corev1.Service {
	result := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(second, 0))},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}},
	}
	if label != "" {
		result.Labels = map[string]string{clusterset.LabelAutoExport: label}
	}
	for _, change := range changes {
		change(result)
	}
	return result
}

func in(namespace string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Namespace = namespace }
}

// ofUser returns an export without the managed-by label, and ours one with it.
func ofUser(name string) *mcsv1beta1.ServiceExport {
	return &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

func ours(name string) *mcsv1beta1.ServiceExport {
	result := ofUser(name)
	result.Labels = map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}
	return result
}

// spec: P3
func TestDecide(t *testing.T) {
	t.Parallel()
	labelled := map[string]string{clusterset.LabelAutoExport: "true"}
	type services = []*corev1.Service
	type exports = []*mcsv1beta1.ServiceExport
	manyPorts := func(s *corev1.Service) {
		s.Spec.Ports = nil
		for i := range int32(1000) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p-%d", i), Port: i + 1, Protocol: corev1.ProtocolTCP})
		}
	}
	alias := func(s *corev1.Service) { s.Annotations = map[string]string{clusterset.AnnotationImport: "web"} }
	withSelector := func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "api"} }
	cases := map[string]struct {
		labels   map[string]string
		services services
		exports  exports
		limit    int
		want     []string
		leftOut  []string
	}{
		"nothing":                         {},
		"no label":                        {services: services{service("web", "", 1)}},
		"a label":                         {services: services{service("web", "true", 1), service("db", "", 1)}, want: []string{"create web"}},
		"exported already":                {services: services{service("web", "true", 1)}, exports: exports{ours("web")}},
		"exported by a user":              {services: services{service("web", "true", 1)}, exports: exports{ofUser("web")}},
		"the label of the namespace":      {labels: labelled, services: services{service("web", "", 1), service("db", "true", 1)}, want: []string{"create db", "create web"}},
		"excluded from the namespace":     {labels: labelled, services: services{service("web", "false", 1)}, exports: exports{ours("web")}, want: []string{"delete web"}},
		"another value excludes":          {labels: labelled, services: services{service("web", "no", 1)}},
		"another value of the namespace":  {labels: map[string]string{clusterset.LabelAutoExport: "yes"}, services: services{service("web", "", 1)}},
		"the label is removed":            {services: services{service("web", "", 1)}, exports: exports{ours("web")}, want: []string{"delete web"}},
		"removed, and a user's own stays": {services: services{service("web", "", 1)}, exports: exports{ofUser("web")}},
		"the Service is deleted":          {labels: labelled, exports: exports{ours("web")}, want: []string{"delete web"}},
		"no Service, a user's own stays":  {labels: labelled, exports: exports{ofUser("web")}},
		"the Service is being deleted":    {services: services{service("web", "true", 1, func(s *corev1.Service) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(2, 0)} })}},
		"ExternalName":                    {labels: labelled, services: services{service("web", "true", 1, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName })}},
		"derived":                         {labels: labelled, services: services{service("derived-1", "", 1, func(s *corev1.Service) { s.Labels = map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy} })}},
		"an alias without pods of its own": {
			labels: labelled, services: services{service("web", "", 1, alias), service("db", "true", 1, alias), service("api", "", 1, alias, withSelector)},
			want: []string{"create api", "create db"},
		},
		"headless":                         {labels: labelled, services: services{service("web", "", 1, func(s *corev1.Service) { s.Spec.ClusterIP = "None" })}, want: []string{"create web"}},
		"more ports than a record has":     {services: services{service("web", "true", 1, manyPorts)}},
		"the cluster's own API server":     {labels: labelled, services: services{service("kubernetes", "true", 1, in("default"))}},
		"a reserved namespace":             {labels: labelled, services: services{service("web", "true", 1, in("kube-system"))}},
		"a namespace of the hub":           {labels: labelled, services: services{service("web", "true", 1, in("member-east"))}},
		"as many as the limit":             {limit: 2, labels: labelled, services: services{service("a", "", 1), service("b", "", 1)}, want: []string{"create a", "create b"}},
		"more than the limit, older first": {limit: 1, labels: labelled, services: services{service("a", "", 2), service("b", "", 1)}, want: []string{"create b"}, leftOut: []string{"a"}},
		"labelled Services first":          {limit: 1, labels: labelled, services: services{service("a", "", 1), service("b", "true", 2)}, want: []string{"create b"}, leftOut: []string{"a"}},
		"existing ones stay": {
			limit: 1, labels: labelled, services: services{service("a", "true", 1), service("y", "", 2), service("z", "", 3)},
			exports: exports{ours("y"), ours("z")}, leftOut: []string{"a"},
		},
		"one for one": {limit: 1, services: services{service("a", "", 1), service("b", "true", 2)}, exports: exports{ours("a")}, want: []string{"delete a", "create b"}},
		"users' own do not count": {
			limit: 1, labels: labelled, services: services{service("a", "", 1), service("b", "", 2)}, exports: exports{ofUser("a")}, want: []string{"create b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.limit == 0 {
				tc.limit = 100
			}
			d := decide(View{Cluster: "east", Labels: tc.labels, Services: tc.services, Exports: tc.exports, Limit: tc.limit})
			var got, leftOut []string
			for _, c := range d.changes {
				got = append(got, fmt.Sprintf("%s %s", c.Verb, c.Object.Name))
				if c.Verb == plan.Create && !clusterset.IsManaged(c.Object.Labels) {
					t.Errorf("export %s is not marked as ours", c.Object.Name)
				}
			}
			for _, s := range d.leftOut {
				leftOut = append(leftOut, s.Name)
			}
			check.Equal(t, "changes and Services left out", tc.want, got)
			check.Equal(t, "changes and Services left out", tc.leftOut, leftOut)
		})
	}
}
