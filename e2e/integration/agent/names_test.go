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
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// testTakenOver: a managed object that a user labels as managed by something else is not changed. The agent reports the effect, and manages
// the object again when the label is removed.
//
// spec: I7, C6, D2
func testTakenOver(t *testing.T, w *env) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	_, source := a.ExportWeb(t, k, "10.1.0.1")
	b.Endpoints(t, k, "a 10.1.0.1:http:8080")
	serviceImport, derived := b.Imported(t, k)
	mirrored := b.Slices(t, k)
	take := func(object client.Object, label string) {
		t.Helper()
		world.Update(t, b, client.ObjectKeyFromObject(object), object, func() { object.SetLabels(map[string]string{label: "mine"}) })
	}
	giveBack := func(object client.Object, label string) {
		t.Helper()
		left := world.Read(t, b, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
		lab.Equal(t, "another user's object changed", object, left)
		world.Update(t, b, client.ObjectKeyFromObject(left), left, func() { withoutLabel(label)(left) })
	}

	take(&mirrored[0], discoveryv1.LabelManagedBy)
	want := fmt.Sprintf("EndpointSlice %s/%s cannot be written: it is not managed by Tombolo and is left alone: rename or delete it.", k.Namespace, mirrored[0].Name)
	b.ImportCondition(t, k, "Ready", metav1.ConditionFalse, "Pending", want)
	source.Endpoints[0].Addresses[0] = "10.1.0.2"
	lab.Must(t, a.Update(t.Context(), source))
	a.Endpoints(t, k, "a 10.1.0.2:http:8080")
	giveBack(&mirrored[0], discoveryv1.LabelManagedBy)
	b.Endpoints(t, k, "a 10.1.0.2:http:8080")
	b.Imported(t, k)

	lab.Must(t, b.Get(t.Context(), k, serviceImport))
	take(serviceImport, clusterset.LabelManagedBy)
	b.Event(t, k, "ServiceImportObstructed", "")
	giveBack(serviceImport, clusterset.LabelManagedBy)
	if after, same := b.Imported(t, k); same.UID != derived.UID || !slices.Equal(after.Spec.IPs, derived.Spec.ClusterIPs) {
		t.Errorf("the import has the addresses %v, and had %v", after.Spec.IPs, derived.Spec.ClusterIPs)
	}

	take(derived, clusterset.LabelManagedBy)
	b.ImportedWith(t, k, func(_ *mcsv1beta1.ServiceImport, other *corev1.Service) error {
		if other.Name == derived.Name {
			return errors.New("it still has another user's Service")
		}
		return nil
	})
	b.Event(t, k, "DerivedServiceReplaced", "")
	b.Endpoints(t, k, "a 10.1.0.2:http:8080")
	lab.Must(t, a.Delete(t.Context(), world.Export(k)))
	b.Gone(t, k)
	b.untouched(t, derived)
}

// testNamesCollide: services whose derived names collide are exported at once, so that several imports want one name before any
// of them has read the others. One name belongs to a Service of a user, which is left alone.
//
// spec: D2
func testNamesCollide(t *testing.T, w *env) {
	a, b := w.members["a"], w.members["b"]
	ns := world.Namespace(t, a, b)
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
	mine := world.Service(key{Namespace: ns, Name: clusterset.ShortDerivedName(keys[0].Name)}, world.Port("mine", 1))
	lab.Must(t, b.Create(t.Context(), mine))
	names := map[string]string{mine.Name: "mine"}
	atOnce(t, keys, func(ctx context.Context, k key) error {
		return errors.Join(a.Create(ctx, world.Service(k, world.Port("http", 80))), a.Create(ctx, world.Export(k)))
	})
	for _, k := range keys {
		_, derived := b.Imported(t, k)
		if other, taken := names[derived.Name]; taken {
			t.Errorf("%s and %s share the derived Service %s", k.Name, other, derived.Name)
		}
		names[derived.Name] = k.Name
	}
	b.untouched(t, mine)
}

// testBothNamesTaken: if a user's Services have both names that a derived Service can have, the import says which of
// them is in its way and waits until that is gone. Neither is touched, and neither gets endpoints.
//
// spec: C6, D2
func testBothNamesTaken(t *testing.T, w *env) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	var users []*corev1.Service
	for _, name := range []string{clusterset.ShortDerivedName(k.Name), clusterset.LongDerivedName(k.Name)} {
		user := world.Service(key{Namespace: k.Namespace, Name: name}, world.Port("mine", 1))
		lab.Must(t, b.Create(t.Context(), user))
		users = append(users, user)
	}
	a.ExportWeb(t, k, "10.1.0.1")
	want := fmt.Sprintf("Service %s/%s cannot be written: it is not managed by Tombolo and is left alone: rename or delete it.", k.Namespace, users[1].Name)
	b.ImportCondition(t, k, "Ready", metav1.ConditionFalse, "Pending", want)
	b.Endpoints(t, k)
	a.Endpoints(t, k, "a 10.1.0.1:http:8080") // elsewhere the names are free
	b.untouched(t, users[0])
	b.untouched(t, users[1])

	world.LogsNoErrors(t, b.Member, k.Namespace) // nothing is tried until the name is free

	lab.Must(t, b.Delete(t.Context(), users[1].DeepCopy()))
	if _, derived := b.Imported(t, k); derived.Name != users[1].Name || derived.UID == users[1].UID {
		t.Errorf("the derived Service is %s with UID %s, want %s and another than %s", derived.Name, derived.UID, users[1].Name, users[1].UID)
	}
	b.Endpoints(t, k, "a 10.1.0.1:http:8080")
	b.untouched(t, users[0])
}

// testForeignImport: an unmanaged ServiceImport of the same name is left alone, which an Event says. An Event that occurs again is
// patched.
//
// spec: I7
func testForeignImport(t *testing.T, a, b *member) {
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	foreign := &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name},
		Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.Headless, Ports: []mcsv1beta1.ServicePort{}},
	}
	lab.Must(t, b.Create(t.Context(), foreign))
	service, _ := a.ExportWeb(t, k)
	world.Eventually(t, func(ctx context.Context) error {
		service.Spec.Ports[0].Port++
		if err := a.Update(ctx, service); err != nil {
			return errors.Join(err, a.Get(ctx, k, service))
		}
		if n := b.EventCounts(t, k.Namespace)["ServiceImportObstructed ServiceImport "+k.Name]; n < 2 {
			return fmt.Errorf("the Event has occurred %d times", n)
		}
		return nil
	})
	b.Gauge(t, "tombolo_obstructed_imports", 1)
	lab.Equal(t, "the unmanaged ServiceImport changed", foreign, world.Read(t, b, k, foreign.DeepCopy()))
	lab.Must(t, b.Delete(t.Context(), foreign))
	b.Imported(t, k)
	b.Gauge(t, "tombolo_obstructed_imports", 0)
}
