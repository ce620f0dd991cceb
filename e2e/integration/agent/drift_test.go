// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// testDrift: whatever is edited or deleted by hand of what the agents have made, in the cluster that imports and in the one that
// exports, is put right, under the names and with the addresses that it had.
//
// spec: I7, I3, I4, I5, I8, D2, D3, D4, C1, C2, C3
func testDrift(t *testing.T, a, b *member) {
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	service, _ := a.ExportWeb(t, k, "10.1.0.1")
	a.Condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
	for _, m := range []*member{a, b} {
		m.Endpoints(t, k, "a 10.1.0.1:http:8080")
		serviceImport, derived := m.Imported(t, k)
		mirrored := m.Slices(t, k)
		names, err := m.names(t.Context(), k.Namespace)
		lab.Must(t, err)
		for name, drift := range driftOfImport(serviceImport) {
			m.drifts(t, "the import's "+name, drift)
		}
		for name, drift := range driftOfDerived(derived) {
			m.drifts(t, "the derived Service's "+name, drift)
		}
		for name, drift := range driftOfSlice(&mirrored[0]) {
			m.drifts(t, "the slice's "+name, drift)
		}
		for name, want := range map[string]client.Object{"the import": serviceImport, "the slice": &mirrored[0], "the derived Service": derived} {
			lab.Must(t, m.Delete(t.Context(), want.DeepCopyObject().(client.Object)))
			m.restored(t, name, want)
		}
		world.Eventually(t, func(ctx context.Context) error {
			after, err := m.names(ctx, k.Namespace)
			if diff := cmp.Diff(names, after); diff != "" {
				return fmt.Errorf("%s: objects (-before +after, %w):\n%s", m.ID, err, diff)
			}
			return nil
		})
	}
	for name, drift := range driftOfExport(world.Read(t, a, k, &mcsv1beta1.ServiceExport{})) {
		a.drifts(t, "the export's "+name, drift)
	}
	a.untouched(t, service)
}

// drift is one edit by hand.
type drift struct {
	// object is as it was, and is to be again.
	object client.Object
	edit   func(client.Object)
	write  func(context.Context, client.Client, client.Object) error
}

func edited[T client.Object](object T, edit func(T)) drift {
	return drift{object, func(o client.Object) { edit(o.(T)) }, func(ctx context.Context, c client.Client, o client.Object) error {
		return c.Update(ctx, o)
	}}
}

// editedStatus is edited for what the API server keeps in a subresource of its own.
func editedStatus[T client.Object](object T, edit func(T)) drift {
	return drift{object, func(o client.Object) { edit(o.(T)) }, func(ctx context.Context, c client.Client, o client.Object) error {
		return c.Status().Update(ctx, o)
	}}
}

func withoutLabel(name string) func(client.Object) {
	return func(o client.Object) {
		labels := o.GetLabels()
		delete(labels, name)
		o.SetLabels(labels)
	}
}

func driftOfImport(want *mcsv1beta1.ServiceImport) map[string]drift {
	type object = *mcsv1beta1.ServiceImport
	says := func(kind string, status metav1.ConditionStatus) func(object) {
		return func(i object) { say(i.Status.Conditions, kind, status) }
	}
	return map[string]drift{
		"ports":                      edited(want, func(i object) { i.Spec.Ports[0].Port = 1 }),
		"lack of ports":              edited(want, func(i object) { i.Spec.Ports = []mcsv1beta1.ServicePort{} }),
		"type":                       edited(want, func(i object) { i.Spec.Type = mcsv1beta1.Headless }),
		"addresses":                  edited(want, func(i object) { i.Spec.IPs[0] = "10.9.9.9" }),
		"lack of addresses":          edited(want, func(i object) { i.Spec.IPs = nil }),
		"order of families":          edited(want, func(i object) { slices.Reverse(i.Spec.IPFamilies) }),
		"lack of families":           edited(want, func(i object) { i.Spec.IPFamilies = nil }),
		"session affinity":           edited(want, func(i object) { i.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }),
		"annotation":                 edited(want, func(i object) { i.Annotations = nil }),
		"record of the derived name": edited(want, func(i object) { i.Annotations[clusterset.AnnotationDerivedService] = "mine" }),
		"additional label":           edited(want, func(i object) { i.Labels["mine"] = "yes" }),
		"mark":                       edited[client.Object](want, withoutLabel(clusterset.LabelManagedBy)),
		"labels":                     edited(want, func(i object) { i.Labels = nil }),
		"exporters":                  editedStatus(want, func(i object) { i.Status.Clusters = []mcsv1beta1.ClusterStatus{{Cluster: "b"}} }),
		"lack of exporters":          editedStatus(want, func(i object) { i.Status.Clusters = nil }),
		"word on slices":             editedStatus(want, func(i object) { i.Status.EndpointSliceObjects = mcsv1beta1.EndpointSliceObjectsAbsent }),
		"condition Ready":            editedStatus(want, says("Ready", metav1.ConditionFalse)),
		"condition of tomorrow":      editedStatus(want, func(i object) { i.Status.Conditions = append(i.Status.Conditions, ofAnotherVersion()) }),
		"lack of conditions":         editedStatus(want, func(i object) { i.Status.Conditions = nil }),
		"status":                     editedStatus(want, func(i object) { i.Status = mcsv1beta1.ServiceImportStatus{} }),
	}
}

func driftOfDerived(want *corev1.Service) map[string]drift {
	type object = *corev1.Service
	return map[string]drift{
		"ports":    edited(want, func(s object) { s.Spec.Ports[0].Port = 1 }),
		"selector": edited(want, func(s object) { s.Spec.Selector = map[string]string{"app": "mine"} }),
		"type":     edited(want, func(s object) { s.Spec.Type = corev1.ServiceTypeNodePort }),
		"type and addresses": edited(want, func(s object) {
			s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org"}
		}),
		"additional label":   edited(want, func(s object) { s.Labels["mine"] = "yes" }),
		"mark":               edited[client.Object](want, withoutLabel(clusterset.LabelManagedBy)),
		"import":             edited[client.Object](want, withoutLabel(mcsv1beta1.LabelServiceName)),
		"import, of another": edited(want, func(s object) { s.Labels[mcsv1beta1.LabelServiceName] = "mine" }),
		"labels":             edited(want, func(s object) { s.Labels = nil }),
	}
}

func driftOfSlice(want *discoveryv1.EndpointSlice) map[string]drift {
	type object = *discoveryv1.EndpointSlice
	return map[string]drift{
		"endpoints":         edited(want, func(s object) { s.Endpoints[0].Addresses = []string{"10.9.9.9"} }),
		"lack of endpoints": edited(want, func(s object) { s.Endpoints = nil }),
		"ports":             edited(want, func(s object) { s.Ports[0].Port = new(int32(1)) }),
		"lack of ports":     edited(want, func(s object) { s.Ports = nil }),
		"additional label":  edited(want, func(s object) { s.Labels["mine"] = "yes" }),
		"mark":              edited[client.Object](want, withoutLabel(discoveryv1.LabelManagedBy)),
		"import":            edited[client.Object](want, withoutLabel(mcsv1beta1.LabelServiceName)),
		"Service":           edited[client.Object](want, withoutLabel(discoveryv1.LabelServiceName)),
		"source":            edited(want, func(s object) { s.Labels[mcsv1beta1.LabelSourceCluster] = "nobody" }),
		"labels":            edited(want, func(s object) { s.Labels = nil }),
	}
}

func driftOfExport(want *mcsv1beta1.ServiceExport) map[string]drift {
	says := func(kind mcsv1beta1.ServiceExportConditionType, status metav1.ConditionStatus) drift {
		return editedStatus(want, func(e *mcsv1beta1.ServiceExport) { say(e.Status.Conditions, string(kind), status) })
	}
	return map[string]drift{
		"condition Valid":    says(valid, metav1.ConditionFalse),
		"condition Ready":    says(ready, metav1.ConditionFalse),
		"condition Conflict": says(conflict, metav1.ConditionTrue),
		"condition of tomorrow": editedStatus(want, func(e *mcsv1beta1.ServiceExport) {
			e.Status.Conditions = append(e.Status.Conditions, ofAnotherVersion())
		}),
		"status": editedStatus(want, func(e *mcsv1beta1.ServiceExport) { e.Status = mcsv1beta1.ServiceExportStatus{} }),
	}
}

// ofAnotherVersion returns a condition that a later version of the agent has set, before a downgrade.
func ofAnotherVersion() metav1.Condition {
	return metav1.Condition{Type: "OfTomorrow", Status: metav1.ConditionFalse, Reason: "Later", LastTransitionTime: metav1.Now()}
}

// say changes what a condition says.
func say(conditions []metav1.Condition, kind string, status metav1.ConditionStatus) {
	c := meta.FindStatusCondition(conditions, kind)
	c.Status, c.Reason, c.Message = status, "Mine", "Edited by hand."
}

// drifts edits an object by hand and waits until it is again what it was.
func (m *member) drifts(t *testing.T, what string, d drift) {
	t.Helper()
	got := d.object.DeepCopyObject().(client.Object)
	lab.Must(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := m.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
			return err
		}
		d.edit(got)
		return d.write(t.Context(), m.Client, got)
	}))
	m.restored(t, what, d.object)
}

// names returns what imports consist of in a namespace.
func (m *member) names(ctx context.Context, namespace string) ([]string, error) {
	var names []string
	err := world.Each(ctx, m, world.OfImports(), func(o client.Object) error {
		names = append(names, fmt.Sprintf("%T %s", o, o.GetName()))
		return nil
	}, client.InNamespace(namespace))
	slices.Sort(names)
	return names, err
}

// restored waits until objects are again what they were.
func (m *member) restored(t *testing.T, what string, objects ...client.Object) {
	t.Helper()
	for _, want := range objects {
		world.Eventually(t, func(ctx context.Context) error {
			got := want.DeepCopyObject().(client.Object)
			if err := m.Get(ctx, client.ObjectKeyFromObject(want), got); err != nil {
				return fmt.Errorf("%s: %s: %w", m.ID, what, err)
			}
			if diff := cmp.Diff(essence(want), essence(got)); diff != "" {
				return fmt.Errorf("%s: %s: it is not restored (-want +got):\n%s", m.ID, what, diff)
			}
			return nil
		})
	}
}

// essence returns an object without what the API server gives it anew each time, and what follows from that.
func essence(object client.Object) client.Object {
	o := object.DeepCopyObject().(client.Object)
	switch typed := o.(type) {
	case *mcsv1beta1.ServiceImport:
		timeless(typed.Status.Conditions, o.GetGeneration())
	case *mcsv1beta1.ServiceExport:
		timeless(typed.Status.Conditions, o.GetGeneration())
	}
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetGeneration(0)
	o.SetCreationTimestamp(metav1.Time{})
	o.SetManagedFields(nil)
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // items of a list have it, single objects do not
	return o
}

// timeless takes from conditions when they changed, and makes their generations how far they are behind the object's.
func timeless(conditions []metav1.Condition, generation int64) {
	for i := range conditions {
		conditions[i].LastTransitionTime = metav1.Time{}
		conditions[i].ObservedGeneration -= generation
	}
}
