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

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
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

// TestAnotherFieldManager: an automatic export that another field manager has written, other than its status, is the user's, also in the
// form in which the agent's cache has it.
//
// spec: P3
func TestAnotherFieldManager(t *testing.T) {
	t.Parallel()
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: subresource}
	}
	created, status := entry(clusterset.FieldManager, update, ""), entry(clusterset.FieldManager, update, "status")
	label := map[string]string{"team": "x"}
	for name, tc := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		labels map[string]string
		want   []string
	}{
		"only the agent":                   {fields: []metav1.ManagedFieldsEntry{created, status}, want: []string{"delete web"}},
		"the status, by another program":   {fields: []metav1.ManagedFieldsEntry{created, entry("other", update, "status")}, want: []string{"delete web"}},
		"kubectl apply":                    {fields: []metav1.ManagedFieldsEntry{created, status, entry("kubectl-client-side-apply", update, "")}},
		"kubectl apply --server-side":      {fields: []metav1.ManagedFieldsEntry{entry("kubectl", apply, ""), created}},
		"server-side apply without labels": {fields: []metav1.ManagedFieldsEntry{entry("kubectl", apply, ""), created, status}, labels: label},
		"kubectl edit":                     {fields: []metav1.ManagedFieldsEntry{created, entry("kubectl-edit", update, "")}},
		"kubectl label":                    {fields: []metav1.ManagedFieldsEntry{created, entry("kubectl-label", update, "")}, labels: label},
		"Helm":                             {fields: []metav1.ManagedFieldsEntry{created, entry("helm", update, "")}},
		"Argo CD":                          {fields: []metav1.ManagedFieldsEntry{created, entry("argocd-controller", apply, "")}},
		"a program with a status, too":     {fields: []metav1.ManagedFieldsEntry{created, entry("x", update, "status"), entry("x", update, "")}},
		"restored from a backup":           {fields: []metav1.ManagedFieldsEntry{entry("velero-server", update, "")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			export := ours("web")
			for k, v := range tc.labels {
				export.Labels[k] = v
			}
			export.ManagedFields = tc.fields
			cached, err := caches.Compact(export.DeepCopy())
			check.Must(t, err)
			for from, e := range map[string]*mcsv1beta1.ServiceExport{"the API server": export, "the cache": cached.(*mcsv1beta1.ServiceExport)} {
				var got []string
				for _, c := range decide(View{Cluster: "east", Services: []*corev1.Service{service("web", "", 1)}, Exports: []*mcsv1beta1.ServiceExport{e}, Limit: 100}).changes {
					got = append(got, fmt.Sprintf("%s %s", c.Verb, c.Object.Name))
				}
				check.Equal(t, "changes, read from "+from, tc.want, got)
			}
		})
	}
}

// TestWaiting: an export is created some time after the label asks for it, if no export exists by then. The limit counts those that
// wait.
//
// spec: P3
func TestWaiting(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	release := func(s *corev1.Service) { s.Annotations = map[string]string{"meta.helm.sh/release-name": "shop"} }
	web, chart := service("web", "true", 1), service("chart", "true", 1, release)
	type services = []*corev1.Service
	for name, tc := range map[string]struct {
		services services
		exports  []*mcsv1beta1.ServiceExport
		asked    map[string]time.Duration
		elapsed  time.Duration
		limit    int
		want     string
	}{
		"just labelled":           {services: services{web}, asked: map[string]time.Duration{"web": 0}, want: "[] after 5s"},
		"almost":                  {services: services{web}, asked: map[string]time.Duration{"web": 0}, elapsed: 4 * time.Second, want: "[] after 1s"},
		"waited":                  {services: services{web}, asked: map[string]time.Duration{"web": 0}, elapsed: 5 * time.Second, want: "[create web] after 0s"},
		"a Service of a release":  {services: services{chart}, asked: map[string]time.Duration{"chart": 0}, elapsed: 5 * time.Second, want: "[] after 25s"},
		"a release without one":   {services: services{chart}, asked: map[string]time.Duration{"chart": 0}, elapsed: 30 * time.Second, want: "[create chart] after 0s"},
		"the chart has its own":   {services: services{chart}, exports: []*mcsv1beta1.ServiceExport{ofUser("chart")}, elapsed: time.Hour, want: "[] after 0s"},
		"the first of two":        {services: services{web, chart}, asked: map[string]time.Duration{"web": 0, "chart": 0}, elapsed: time.Second, want: "[] after 4s"},
		"one waits":               {services: services{web, chart}, asked: map[string]time.Duration{"web": 0, "chart": 0}, elapsed: 6 * time.Second, want: "[create web] after 24s"},
		"a place is kept":         {services: services{chart, web}, asked: map[string]time.Duration{"web": 0, "chart": 0}, elapsed: 6 * time.Second, limit: 1, want: "[] after 24s"},
		"seen for the first time": {services: services{web}, want: "[] after 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := map[string]time.Time{}
			for k, v := range tc.asked {
				before[k] = start.Add(v)
			}
			if tc.limit == 0 {
				tc.limit = 100
			}
			v := View{Cluster: "east", Services: tc.services, Exports: tc.exports, Limit: tc.limit, Now: start.Add(tc.elapsed)}
			v.Asked = askedSince(before, v)
			d := decide(v)
			var got []string
			for _, c := range d.changes {
				got = append(got, fmt.Sprintf("%s %s", c.Verb, c.Object.Name))
			}
			check.Equal(t, "changes", tc.want, fmt.Sprintf("%v after %s", got, d.after))
		})
	}
}
