// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"hash/adler32"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// spec: I7, I5, D3, D4
func testDrift(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	a.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	b.endpoints(t, k, "a 10.1.0.1:http:8080")
	serviceImport, derived := b.imported(t, k)
	mirrored, err := b.mirrored(t.Context(), k)
	must(t, err)

	edits := map[string]struct {
		object client.Object
		edit   func(client.Object)
	}{
		"the import's ports": {serviceImport, func(o client.Object) {
			o.(*mcsv1beta1.ServiceImport).Spec.Ports[0].Port = 1
		}},
		"the import's annotation": {serviceImport, func(o client.Object) { o.SetAnnotations(nil) }},
		"the derived Service's ports": {derived, func(o client.Object) {
			o.(*corev1.Service).Spec.Ports[0].Port = 1
		}},
		"the derived Service's selector": {derived, func(o client.Object) {
			o.(*corev1.Service).Spec.Selector = map[string]string{"app": "mine"}
		}},
		"the slice's endpoints": {&mirrored[0], func(o client.Object) {
			o.(*discoveryv1.EndpointSlice).Endpoints[0].Addresses = []string{"10.9.9.9"}
		}},
		"the slice's labels": {&mirrored[0], func(o client.Object) {
			labels := o.GetLabels()
			delete(labels, mcsv1beta1.LabelServiceName)
			o.SetLabels(labels)
		}},
	}
	for name, drift := range edits {
		want := drift.object
		got := want.DeepCopyObject().(client.Object)
		must(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
			if err := b.Get(t.Context(), client.ObjectKeyFromObject(want), got); err != nil {
				return err
			}
			drift.edit(got)
			return b.Update(t.Context(), got)
		}))
		b.restored(t, name, want)
	}
	for name, want := range map[string]client.Object{"the import": serviceImport, "the slice": &mirrored[0], "the derived Service": derived} {
		must(t, b.Delete(t.Context(), want.DeepCopyObject().(client.Object)))
		b.restored(t, name, want)
	}
	after, restored := b.imported(t, k)
	if diff := cmp.Diff(serviceImport.Spec.IPs, after.Spec.IPs); diff != "" {
		t.Errorf("the import's addresses changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(derived.Spec.ClusterIPs, restored.Spec.ClusterIPs); diff != "" {
		t.Errorf("the derived Service's addresses changed (-want +got):\n%s", diff)
	}
}

// restored waits until an object is again what it was.
func (m *member) restored(t *testing.T, what string, want client.Object) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		got := want.DeepCopyObject().(client.Object)
		if err := m.Get(ctx, client.ObjectKeyFromObject(want), got); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if diff := cmp.Diff(essence(want), essence(got)); diff != "" {
			return fmt.Errorf("%s is not restored (-want +got):\n%s", what, diff)
		}
		return nil
	})
}

// essence returns an object without what the API server gives it anew each time.
func essence(object client.Object) client.Object {
	o := object.DeepCopyObject().(client.Object)
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetGeneration(0)
	o.SetCreationTimestamp(metav1.Time{})
	o.SetManagedFields(nil)
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // items of a list have it, single objects do not
	if serviceImport, ok := o.(*mcsv1beta1.ServiceImport); ok {
		serviceImport.Status = mcsv1beta1.ServiceImportStatus{}
	}
	return o
}

// spec: I7
func testForeignImport(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	foreign := &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name},
		Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.Headless, Ports: []mcsv1beta1.ServicePort{}},
	}
	must(t, b.Create(t.Context(), foreign))
	a.exportService(t, clusterIPService(k, port("http", 80)))
	eventually(t, func(ctx context.Context) error { return b.hasEvent(ctx, k, "ServiceImportObstructed") })
	b.gauge(t, "tombolo_obstructed_imports", 1)
	after := foreign.DeepCopy()
	must(t, b.Get(t.Context(), k, after))
	if diff := cmp.Diff(foreign, after); diff != "" {
		t.Errorf("somebody else's ServiceImport changed (-before +after):\n%s", diff)
	}
	must(t, b.Delete(t.Context(), foreign))
	b.imported(t, k)
	b.gauge(t, "tombolo_obstructed_imports", 0)
}

// spec: D2
func testCollision(t *testing.T, a, b *member) {
	ns := namespace(t, a, b)
	mine := clusterIPService(key{Namespace: ns, Name: "derived-435094621"}, port("mine", 1))
	must(t, b.Create(t.Context(), mine))
	names := map[string]string{}
	for _, name := range []string{"web-service", "shard-020", "shard-101"} {
		k := key{Namespace: ns, Name: name}
		a.exportService(t, clusterIPService(k, port("http", 80)))
		_, derived := b.imported(t, k)
		if other, taken := names[derived.Name]; taken {
			t.Errorf("%s and %s share the derived Service %s", name, other, derived.Name)
		}
		names[derived.Name] = name
	}
	after := mine.DeepCopy()
	must(t, b.Get(t.Context(), client.ObjectKeyFromObject(mine), after))
	if diff := cmp.Diff(mine, after); diff != "" {
		t.Errorf("somebody else's Service changed (-before +after):\n%s", diff)
	}
}

// testCollisionAtOnce: services whose names collide are exported all in one moment, so that several imports ask for one name
// before any of them knows of the others.
//
// spec: D2
func testCollisionAtOnce(t *testing.T, a, b *member) {
	ns := namespace(t, a, b)
	colliding := map[uint32][]key{}
	for i := range 10_000 {
		name := fmt.Sprintf("svc-%04d", i)
		sum := adler32.Checksum([]byte(name))
		colliding[sum] = append(colliding[sum], key{Namespace: ns, Name: name})
	}
	var keys []key
	for _, sum := range slices.Sorted(maps.Keys(colliding)) {
		if group := colliding[sum]; len(group) >= 10 && len(keys) < 50 {
			keys = append(keys, group[:10]...)
		}
	}
	atOnce(t, keys, func(ctx context.Context, k key) error {
		return errors.Join(a.Create(ctx, clusterIPService(k, port("http", 80))), a.Create(ctx, export(k)))
	})
	names := map[string]string{}
	for _, k := range keys {
		_, derived := b.imported(t, k)
		if other, taken := names[derived.Name]; taken {
			t.Errorf("%s and %s share the derived Service %s", k.Name, other, derived.Name)
		}
		names[derived.Name] = k.Name
	}
}

func testAddressLeftOut(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	a.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1", "192.0.2.1"))
	b.endpoints(t, k, "a 10.1.0.1:http:8080")
	eventually(t, func(ctx context.Context) error {
		c := a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
		want := "The service is exported to the clusterset. Left out: 192.0.2.1 is outside the cluster's pod and node CIDRs. " +
			"If these addresses are right, the hub's administrator adds their range to this cluster's Member."
		if c.Message != want {
			return fmt.Errorf("message %q, want %q", c.Message, want)
		}
		return nil
	})
}

// hasEvent returns nil once there is an Event about an object of this name for this reason.
func (m *member) hasEvent(ctx context.Context, k key, reason string) error {
	list := &eventsv1.EventList{}
	if err := m.List(ctx, list, client.InNamespace(k.Namespace)); err != nil {
		return err
	}
	var seen []string
	for _, event := range list.Items {
		if event.Regarding.Name == k.Name && event.Reason == reason {
			return nil
		}
		seen = append(seen, event.Regarding.Name+" "+event.Reason)
	}
	return fmt.Errorf("%s: no Event %s about %s, only: %s", m.id, reason, k, strings.Join(seen, ", "))
}
