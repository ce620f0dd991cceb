// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

func labelling(o *agent.Options) { o.AutoExport, o.AutoExportLimit = agent.AutoExportLabel, 3 }

// label sets the label for automatic export of a Service, or of a Namespace if the key has no namespace. An empty value removes it.
func (m *member) label(t *testing.T, k key, value string) {
	t.Helper()
	var object client.Object = &corev1.Service{}
	if k.Namespace == "" {
		object = &corev1.Namespace{}
	}
	world.Update(t, m, k, object, func() {
		labels := map[string]string{}
		maps.Copy(labels, object.GetLabels())
		labels[clusterset.LabelAutoExport] = value
		if value == "" {
			delete(labels, clusterset.LabelAutoExport)
		}
		object.SetLabels(labels)
	})
}

// serve creates a Service with an endpoint, without an export.
func (m *member) serve(t *testing.T, k key, address string) {
	t.Helper()
	service := world.Service(k, world.Port("http", 80))
	world.Create(t, m, service, world.Slice(service, "v4", address))
}

// exportedByLabel waits until a namespace has exactly these ServiceExports with the managed-by label.
func (m *member) exportedByLabel(t *testing.T, namespace string, want ...string) {
	t.Helper()
	world.Eventually(t, func(ctx context.Context) error {
		list := &mcsv1beta1.ServiceExportList{}
		managed := client.MatchingLabels{clusterset.LabelManagedBy: clusterset.ManagedBy}
		if err := m.List(ctx, list, client.InNamespace(namespace), managed); err != nil {
			return err
		}
		var got []string
		for _, e := range list.Items {
			got = append(got, e.Name)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			return fmt.Errorf("%s exports %v by label, want %v", m.ID, got, want)
		}
		return nil
	})
}

// TestAutoExport: a label of a Service or of its Namespace exports it, as a ServiceExport that an agent has marked as its own and
// deletes with the label. A user's own ServiceExport is never changed or deleted.
//
//nolint:tparallel // the subtests share two clusters
func TestAutoExport(t *testing.T) {
	t.Parallel()
	w := newEnv(t, membership.Hub(), lab.Member("a"), lab.Member("b"))
	a, b := w.members["a"], w.members["b"]
	stop := a.Start(t, labelling)
	b.Start(t)
	t.Run("Rights", func(t *testing.T) { testAutoExportRights(t, a, b) })
	t.Run("Label", func(t *testing.T) { testAutoExportLabel(t, a, b) })
	t.Run("UsersOwn", func(t *testing.T) { testAutoExportUsersOwn(t, a) })
	t.Run("Taken", func(t *testing.T) { testAutoExportTaken(t, a) })
	t.Run("Chart", func(t *testing.T) { testAutoExportChart(t, a) })
	t.Run("Limit", func(t *testing.T) { testAutoExportLimit(t, a) })
	t.Run("Off", func(t *testing.T) { testAutoExportOff(t, a, b, stop) })
}

// testAutoExportRights: an agent without the rights says what to do, and exports when it has them.
//
// spec: P3
func testAutoExportRights(t *testing.T, a, b *member) {
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	a.serve(t, k, "10.1.0.1")
	a.label(t, k, "true")
	a.Event(t, k, "AutoExportRefused", `"kubectl clusterset join --auto-export" or the kustomization manifests/autoexport gives them`)
	if log := a.Output.Tail(200); !strings.Contains(log, "manifests/autoexport") {
		t.Errorf("the agent does not log what it lacks:\n%s", log)
	}
	lab.Must(t, membership.InstallAutoExport(t.Context(), a.Cluster))
	other := key{Namespace: k.Namespace, Name: "other"} // whose event the agent need not wait for a retry
	a.serve(t, other, "10.1.0.2")
	world.Eventually(t, func(ctx context.Context) error { // until the API server has read the role
		a.label(t, other, "true")
		a.label(t, other, "")
		return a.Get(ctx, k, &mcsv1beta1.ServiceExport{})
	})
	b.Endpoints(t, k, "a 10.1.0.1:http:8080")
}

// testAutoExportLabel: labels of Services and of their Namespace, and what they do not export.
//
// spec: P3
func testAutoExportLabel(t *testing.T, a, b *member) {
	ns := world.Namespace(t, a, b)
	web, db := key{Namespace: ns, Name: "web"}, key{Namespace: ns, Name: "db"}
	a.serve(t, web, "10.1.0.1")
	a.serve(t, db, "10.1.0.2")
	external := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "external", Labels: map[string]string{clusterset.LabelAutoExport: "true"}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"},
	}
	lab.Must(t, a.Create(t.Context(), external))
	a.label(t, web, "true")
	b.Endpoints(t, web, "a 10.1.0.1:http:8080")
	a.exportedByLabel(t, ns, "web")
	a.Condition(t, web, ready, metav1.ConditionTrue, "Exported")

	a.label(t, key{Name: ns}, "true") // derived Services are in the namespace too
	b.Endpoints(t, db, "a 10.1.0.2:http:8080")
	a.Imported(t, db)
	a.label(t, web, "false")
	b.Gone(t, web)
	a.exportedByLabel(t, ns, "db")
	world.Update(t, a, client.ObjectKeyFromObject(external), external, func() {
		external.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{world.Port("http", 80)}}
	})
	a.exportedByLabel(t, ns, "db", "external")
	lab.Must(t, a.Delete(t.Context(), external))
	a.exportedByLabel(t, ns, "db")
	a.label(t, web, "")
	b.Imported(t, web)
	lab.Must(t, a.Delete(t.Context(), world.Export(web)))
	a.exportedByLabel(t, ns, "db", "web")
	a.label(t, key{Name: ns}, "")
	b.Gone(t, web, db)
	a.exportedByLabel(t, ns)
	world.LogsNoErrors(t, a.Member, ns)
}

// testAutoExportUsersOwn: a user's own export stays as it is, with and without the label. If a user removes the managed-by label of an
// automatic one, it is the user's.
//
// spec: P3
func testAutoExportUsersOwn(t *testing.T, a *member) {
	ns := world.Namespace(t, a)
	own, taken := key{Namespace: ns, Name: "own"}, key{Namespace: ns, Name: "taken"}
	a.ExportWeb(t, own, "10.1.0.1")
	a.serve(t, taken, "10.1.0.2")
	before := world.Read(t, a, own, &mcsv1beta1.ServiceExport{})
	a.label(t, key{Name: ns}, "true")
	a.exportedByLabel(t, ns, "taken")
	export := &mcsv1beta1.ServiceExport{}
	world.Update(t, a, taken, export, func() { export.Labels = map[string]string{"team": "x"} })
	late := key{Namespace: ns, Name: "late"}
	a.serve(t, late, "10.1.0.3") // the agent has reconciled since
	a.exportedByLabel(t, ns, "late")
	a.label(t, key{Name: ns}, "")
	a.exportedByLabel(t, ns)
	after := world.Read(t, a, own, &mcsv1beta1.ServiceExport{})
	export = world.Read(t, a, taken, &mcsv1beta1.ServiceExport{})
	if after.UID != before.UID || after.Generation != before.Generation || len(after.Labels) > 0 || export.Labels["team"] != "x" || len(export.Labels) > 1 {
		t.Errorf("the users' own exports are %+v and %+v", after.ObjectMeta, export.ObjectMeta)
	}
}

// testAutoExportTaken: an automatic export that another field manager has written is the user's, and stays without the label.
//
// spec: P3
func testAutoExportTaken(t *testing.T, a *member) {
	ns := world.Namespace(t, a)
	applied := func(manager string, options ...client.PatchOption) func(key) error {
		return func(k key) error {
			text := fmt.Sprintf(`{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":%q,"namespace":%q,"annotations":{"by":"user"}}}`, k.Name, k.Namespace)
			patch := client.RawPatch(types.MergePatchType, []byte(text))
			if len(options) > 0 {
				patch = client.RawPatch(types.ApplyPatchType, []byte(text))
			}
			return a.Patch(t.Context(), world.Export(k), patch, append(options, client.FieldOwner(manager))...)
		}
	}
	ways := map[string]func(key) error{
		"applied": applied("kubectl-client-side-apply"), "server-side": applied("kubectl", client.ForceOwnership), "argo": applied("argocd-controller", client.ForceOwnership),
	}
	lab.Must(t, a.Create(t.Context(), world.Service(key{Namespace: ns, Name: "untouched"}, world.Port("http", 80))))
	lab.Must(t, a.Create(t.Context(), world.Service(key{Namespace: ns, Name: "edited"}, world.Port("http", 80))))
	a.label(t, key{Name: ns}, "true")
	a.exportedByLabel(t, ns, "edited", "untouched")
	export := &mcsv1beta1.ServiceExport{}
	world.Update(t, client.WithFieldOwner(a, "kubectl-edit"), key{Namespace: ns, Name: "edited"}, export, func() {
		export.Spec.ExportedLabels = map[string]string{"team": "x"}
	})
	for name, way := range ways { // the namespace has at most three automatic exports
		k := key{Namespace: ns, Name: name}
		lab.Must(t, a.Create(t.Context(), world.Service(k, world.Port("http", 80))))
		world.Eventually(t, func(ctx context.Context) error { return a.Get(ctx, k, &mcsv1beta1.ServiceExport{}) })
		lab.Must(t, way(k))
	}
	a.label(t, key{Name: ns}, "")
	a.exportedByLabel(t, ns, "applied", "argo", "edited", "server-side") // the users', with the label
	world.LogsNoErrors(t, a.Member, ns)
}

// testAutoExportChart: a chart whose Service a label exports can create its own ServiceExport after the Service.
//
// spec: P3
func testAutoExportChart(t *testing.T, a *member) {
	ns := world.Namespace(t, a)
	a.label(t, key{Name: ns}, "true")
	other := key{Namespace: ns, Name: "other"}
	chart := world.Service(key{Namespace: ns, Name: "chart"}, world.Port("http", 80))
	chart.Annotations = map[string]string{"meta.helm.sh/release-name": "shop"}
	lab.Must(t, a.Create(t.Context(), chart))
	lab.Must(t, a.Create(t.Context(), world.Service(other, world.Port("http", 80))))
	a.exportedByLabel(t, ns, "other") // the agent has seen both
	lab.Must(t, a.Create(t.Context(), world.Export(client.ObjectKeyFromObject(chart))))
}

// testAutoExportLimit: of a namespace, no more Services are exported than the limit, and an Event says so.
//
// spec: P3
func testAutoExportLimit(t *testing.T, a *member) {
	ns := world.Namespace(t, a)
	a.label(t, key{Name: ns}, "true")
	for i := range 3 {
		a.serve(t, key{Namespace: ns, Name: fmt.Sprintf("s%d", i)}, fmt.Sprintf("10.1.0.%d", i+1))
	}
	a.exportedByLabel(t, ns, "s0", "s1", "s2")
	first := key{Namespace: ns, Name: "a"}
	a.serve(t, first, "10.1.0.9")
	a.Event(t, first, "AutoExportLimit", "1 Services of namespace limit with the label tombolo-mcs.io/auto-export are not exported, the first is a: the agent exports at most 3 of a namespace by label")
	a.exportedByLabel(t, ns, "s0", "s1", "s2")
	a.label(t, key{Namespace: ns, Name: "s1"}, "false")
	a.exportedByLabel(t, ns, "a", "s0", "s2")
}

// testAutoExportOff: an agent without the flag creates and deletes nothing, and what is exported stays exported.
//
// spec: P3
func testAutoExportOff(t *testing.T, a, b *member, stop func()) {
	ns := world.Namespace(t, a, b)
	web, db := key{Namespace: ns, Name: "web"}, key{Namespace: ns, Name: "db"}
	a.serve(t, web, "10.1.0.1")
	a.serve(t, db, "10.1.0.2")
	a.label(t, web, "true")
	b.Endpoints(t, web, "a 10.1.0.1:http:8080")
	stop()
	stop = a.Start(t)
	a.label(t, web, "")
	a.label(t, db, "true")
	last := key{Namespace: ns, Name: "last"}
	a.ExportWeb(t, last, "10.1.0.3")
	b.Endpoints(t, last, "a 10.1.0.3:http:8080")
	a.exportedByLabel(t, ns, "web")
	lab.Must(t, b.HasEndpoints(t.Context(), web, "a 10.1.0.1:http:8080"))
	if err := b.Get(t.Context(), db, &mcsv1beta1.ServiceImport{}); !apierrors.IsNotFound(err) {
		t.Errorf("a label alone exports: %v", err)
	}
	stop()
	a.Start(t, labelling)
	b.Gone(t, web)
	b.Endpoints(t, db, "a 10.1.0.2:http:8080")
}
