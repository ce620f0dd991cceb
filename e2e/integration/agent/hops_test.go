// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestHops: on the hub and in the namespaces at both ends, whatever others do is made up for while the agents run.
//
//nolint:tparallel // while they waited for their turn, other tests would start clusters
func TestHops(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	w.members["a"].start(t)
	w.members["b"].startWith(t, func(o *agent.Options) { o.DenyNamespaces, o.Namespace = []string{"denied"}, "agents" })
	for name, story := range map[string]func(*testing.T, *world){
		"RecordsByHand":                 testRecordsByHand,
		"RecordsOfNobody":               testRecordsOfNobody,
		"RecreatedAtOnce":               testRecreatedAtOnce,
		"TerminatingNamespace":          testTerminating,
		"ExportersNamespaceTerminating": testExporterTerminating,
		"NamespacesDenied":              testNamespacesDenied,
	} {
		t.Run(name, func(t *testing.T) { story(t, w) })
	}
}

// TestHeartbeatByHand: a heartbeat that somebody edits or deletes is put right, and nothing that was imported suffers,
// not even when it says that another cluster bears the member's ID.
//
// spec: I2, K2
func TestHeartbeatByHand(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	a.start(t)
	b.start(t)
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	a.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	b.endpoints(t, k, "a 10.1.0.1:http:8080")
	a.condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
	w.settled(t)
	before := w.versions(t, k)
	eventually(t, func(ctx context.Context) error { return a.says(ctx, w, hubv1alpha1.PublicationComplete) })
	name := key{Namespace: "member-a", Name: hubv1alpha1.HeartbeatName}
	want := &hubv1alpha1.Heartbeat{}
	lab.Must(t, w.hubKube.Get(t.Context(), name, want))

	for what, edit := range map[string]func(*hubv1alpha1.Heartbeat){
		"partial":     func(h *hubv1alpha1.Heartbeat) { h.Spec.Publication = hubv1alpha1.PublicationPartial },
		"other agent": func(h *hubv1alpha1.Heartbeat) { h.Spec.AgentVersion, h.Spec.Services = "v0", 7 },
	} {
		heartbeat := &hubv1alpha1.Heartbeat{}
		lab.Must(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
			if err := w.hubKube.Get(t.Context(), name, heartbeat); err != nil {
				return err
			}
			edit(heartbeat)
			return w.hubKube.Update(t.Context(), heartbeat)
		}))
		eventually(t, func(ctx context.Context) error { return w.hasHeartbeat(ctx, want, what) })
	}
	lab.Must(t, w.hubKube.Delete(t.Context(), want.DeepCopy()))
	eventually(t, func(ctx context.Context) error { return w.hasHeartbeat(ctx, want, "deleted") })
	w.settled(t)
	if after := w.versions(t, k); after != before {
		t.Errorf("objects of %s were written without need:\n%s\nbefore:\n%s", k, after, before)
	}

	rival := &hubv1alpha1.Heartbeat{}
	lab.Must(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := w.hubKube.Get(t.Context(), name, rival); err != nil {
			return err
		}
		rival.Spec.ClusterUID = "somebody-else"
		return w.hubKube.Update(t.Context(), rival)
	}))
	eventually(t, func(ctx context.Context) error { return w.hasHeartbeat(ctx, want, "rival") })
	a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
	b.endpoints(t, k, "a 10.1.0.1:http:8080")
	serviceImport, _ := b.imported(t, k)
	late := key{Namespace: k.Namespace, Name: "late"} // it publishes again
	a.exportService(t, clusterIPService(late, port("http", 80)))
	b.imported(t, late)
	if after, _ := b.imported(t, k); after.UID != serviceImport.UID {
		t.Errorf("the import was replaced")
	}
}

// hasHeartbeat returns nil where a member's heartbeat says the same as another, at whatever time.
func (w *world) hasHeartbeat(ctx context.Context, want *hubv1alpha1.Heartbeat, what string) error {
	got := &hubv1alpha1.Heartbeat{}
	if err := w.hubKube.Get(ctx, client.ObjectKeyFromObject(want), got); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	got.Spec.RenewTime = want.Spec.RenewTime
	got.Spec.ServicesVersion, got.Spec.EndpointsVersion = want.Spec.ServicesVersion, want.Spec.EndpointsVersion // which a list lets it know
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		return fmt.Errorf("%s: the heartbeat is not put right (-want +got):\n%s", what, diff)
	}
	return nil
}

// testRecordsByHand: what the hub's administrator edits or deletes of a member's records comes back, and with it what
// the importers lost meanwhile.
//
// spec: I2, I7
func testRecordsByHand(t *testing.T, w *world) {
	a, b, hub := w.members["a"], w.members["b"], &member{Client: w.hubKube, id: "hub"}
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	source := clusterIPService(k, port("http", 80))
	a.exportService(t, source, slice(source, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"), slice(source, "v6", discoveryv1.AddressTypeIPv6, "fd00:1::1"))
	whole := []string{"a 10.1.0.1:http:8080", "a fd00:1::1:http:8080"}
	b.endpoints(t, k, whole...)
	imported, _ := b.imported(t, k)
	service := &hubv1alpha1.PublishedService{}
	lab.Must(t, hub.Get(t.Context(), key{Namespace: "member-a", Name: k.Namespace + "." + k.Name}, service))
	endpoints := w.publishedEndpoints(t, "a", k)
	if len(endpoints) != 2 {
		t.Fatalf("%d records of endpoints, want 2", len(endpoints))
	}
	restored := func(what string) {
		t.Helper()
		hub.restored(t, what, service)
		hub.restored(t, what, endpoints[0])
		hub.restored(t, what, endpoints[1])
		b.endpoints(t, k, whole...)
		b.restored(t, what, imported)
	}
	edit := func(object client.Object, change func()) {
		t.Helper()
		lab.Must(t, hub.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		change()
		lab.Must(t, hub.Update(t.Context(), object))
	}
	edited := service.DeepCopy()
	edit(edited, func() { edited.Spec.Ports[0].Port = 81 })
	restored("the service's port")
	changed := endpoints[0].DeepCopy()
	edit(changed, func() { changed.Spec.Groups[0].Ready = new(false) })
	restored("the endpoints' readiness")
	edit(changed, func() { changed.Spec.Ports[0].Port = 1 })
	restored("the endpoints' port")
	lab.Must(t, hub.Delete(t.Context(), endpoints[1].DeepCopy()))
	restored("the endpoints")

	lab.Must(t, hub.Delete(t.Context(), service.DeepCopy()))
	hub.restored(t, "the service", service)
	b.endpoints(t, k, whole...)
	b.imported(t, k)
	a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
	a.condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
}

// publishedEndpoints returns a member's records of a service's endpoints.
func (w *world) publishedEndpoints(t *testing.T, id string, k key) []*hubv1alpha1.PublishedEndpoints {
	t.Helper()
	list := &hubv1alpha1.PublishedEndpointsList{}
	lab.Must(t, w.hubKube.List(t.Context(), list, client.InNamespace("member-"+id)))
	var found []*hubv1alpha1.PublishedEndpoints
	for i := range list.Items {
		if s := list.Items[i].Spec; string(s.Namespace) == k.Namespace && string(s.Service) == k.Name {
			found = append(found, &list.Items[i])
		}
	}
	return found
}

// testRecordsOfNobody: a record that lies in a member's namespace and that the member does not export is removed.
//
// spec: E1, E3
func testRecordsOfNobody(t *testing.T, w *world) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: namespace(t, a, b), Name: "ghost"}
	lab.Must(t, a.Create(t.Context(), clusterIPService(k, port("http", 80)))) // there, but not exported
	w.forge(t, k, nil, "10.1.0.1")
	w.noRecords(t, "a", k)
	witness := key{Namespace: k.Namespace, Name: "witness"} // what comes later has come
	a.exportService(t, clusterIPService(witness, port("http", 80)))
	b.imported(t, witness)
	b.gone(t, k)
}

// noRecords waits until the hub holds nothing of a member's service, and lists nothing of it to an agent that starts and asks for
// what the API server has cached: what that agent saw deleted later it would believe.
func (w *world) noRecords(t *testing.T, id string, k key) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		name := key{Namespace: "member-" + id, Name: k.Namespace + "." + k.Name}
		if err := absent(w.hubKube.Get(ctx, name, &hubv1alpha1.PublishedService{})); err != nil {
			return fmt.Errorf("record of %s: %w", k, err)
		}
		if left := w.publishedEndpoints(t, id, k); len(left) > 0 {
			return fmt.Errorf("%d records of endpoints of %s are left", len(left), k)
		}
		for _, list := range []client.ObjectList{&hubv1alpha1.PublishedServiceList{}, &hubv1alpha1.PublishedEndpointsList{}} {
			cached := &client.ListOptions{Namespace: name.Namespace, Raw: &metav1.ListOptions{ResourceVersion: "0"}}
			if err := w.hubKube.List(ctx, list, cached); err != nil {
				return err
			}
			if left := recordsOf(list, name.Name); left > 0 {
				return fmt.Errorf("%d cached records of %s are left", left, k)
			}
		}
		return nil
	})
}

// recordsOf returns how many records there are of a service, which is the name of one and begins those of the others.
func recordsOf(list client.ObjectList, name string) int {
	n := 0
	_ = meta.EachListItem(list, func(item runtime.Object) error { // which returns no other error
		if record := item.(client.Object).GetName(); record == name || strings.HasPrefix(record, name+".") {
			n++
		}
		return nil
	})
	return n
}

// testRecreatedAtOnce: Services and exports that are deleted and created again at once, of another type too, end as what
// they are last, once, and under the derived name that they had.
//
// spec: E6, D2, I7
func testRecreatedAtOnce(t *testing.T, w *world) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	plain, headless := clusterIPService(k, port("http", 80)), headlessService(k, port("http", 80))
	elsewhere := &corev1.Service{
		ObjectMeta: plain.ObjectMeta,
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"},
	}
	a.exportService(t, plain.DeepCopy(), slice(plain, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	_, derived := b.imported(t, k)
	for round := range 12 {
		next := []*corev1.Service{plain, headless, plain, elsewhere}[(round+1)%4]
		lab.Must(t, a.Delete(t.Context(), plain.DeepCopy()))
		if round%2 == 0 {
			lab.Must(t, a.Delete(t.Context(), export(k)))
		}
		lab.Must(t, a.Create(t.Context(), next.DeepCopy()))
		if round%2 == 0 {
			lab.Must(t, a.Create(t.Context(), export(k)))
		}
		if round%5 == 4 { // let it come through now and then
			a.condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
		}
	}
	lab.Must(t, a.Delete(t.Context(), plain.DeepCopy()))
	lab.Must(t, a.Create(t.Context(), clusterIPService(k, port("http", 81)))) // unlike the first
	a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
	b.endpoints(t, k, "a 10.1.0.1:http:8080")
	eventually(t, func(ctx context.Context) error {
		serviceImport, after := b.imported(t, k)
		if serviceImport.Spec.Type != mcsv1beta1.ClusterSetIP || serviceImport.Spec.Ports[0].Port != 81 || !cmp.Equal(serviceImport.Spec.IPs, after.Spec.ClusterIPs) {
			return fmt.Errorf("the import is still %+v, its derived Service %+v", serviceImport.Spec, after.Spec)
		}
		if after.Name != derived.Name {
			t.Errorf("the derived Service is called %s now, and was called %s", after.Name, derived.Name)
		}
		services := &corev1.ServiceList{}
		if err := b.List(ctx, services, client.InNamespace(k.Namespace)); err != nil {
			return err
		}
		if mirrored, err := b.mirrored(ctx, k); err != nil || len(mirrored) != 1 || len(services.Items) != 1 {
			return fmt.Errorf("%d Services and %d mirrored slices (%w), want one each", len(services.Items), len(mirrored), err)
		}
		return nil
	})
	w.calm(t, k)
	for _, m := range []*member{a, b} {
		if found := m.output.errors(k.Namespace); len(found) > 0 {
			t.Errorf("%s logs errors: %v", m.id, found)
		}
	}
}

// calm waits until nothing of a service has been written for two heartbeats of all members.
func (w *world) calm(t *testing.T, k key) {
	t.Helper()
	eventually(t, func(context.Context) error {
		before := w.versions(t, k)
		for range 2 {
			w.beat(t)
		}
		if after := w.versions(t, k); after != before {
			return fmt.Errorf("still written:\n%s\nbefore:\n%s", after, before)
		}
		return nil
	})
}

// testTerminating: into a namespace that is being deleted, for however long, nothing is written; it is filled again when
// it has been created anew.
//
// spec: E8, I1
func testTerminating(t *testing.T, w *world) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	source := slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1")
	a.exportService(t, service, source)
	b.endpoints(t, k, "a 10.1.0.1:http:8080")
	b.imported(t, k)
	end := b.terminating(t, k.Namespace)
	b.gone(t, k)

	late := key{Namespace: k.Namespace, Name: "late"}
	b.createsNothing(t, w, func() {
		source.Endpoints[0].Addresses[0] = "10.1.0.2"
		lab.Must(t, a.Update(t.Context(), source))
		a.exportService(t, clusterIPService(late, port("http", 80)))
		a.condition(t, late, conflict, metav1.ConditionFalse, "NoConflicts")
		a.endpoints(t, k, "a 10.1.0.2:http:8080")
	})
	end()
	if found := b.output.errors(k.Namespace); len(found) > 0 {
		t.Errorf("b logs errors: %v", found)
	}
	lab.Must(t, b.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.Namespace}}))
	b.imported(t, late)
	b.endpoints(t, k, "a 10.1.0.2:http:8080")
}

// testExporterTerminating: with its namespace, however long that takes to go, a cluster's exports are withdrawn from the hub and
// everywhere, and nothing is imported into what is left of it. All is back when both have been created anew.
//
// spec: E6, E8, E3
func testExporterTerminating(t *testing.T, w *world) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	shared := key{Namespace: k.Namespace, Name: "shared"}
	offer := func() {
		t.Helper()
		lab.Must(t, a.exportOne(t.Context(), k))
		lab.Must(t, a.exportOne(t.Context(), shared))
		b.endpoints(t, k, "a 10.1.0.1:http:8080")
		for _, m := range []*member{a, b} {
			m.imported(t, k)
			m.imported(t, shared)
			m.endpoints(t, shared, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
		}
	}
	service := clusterIPService(shared, port("http", 80))
	source := slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.2.0.1")
	b.exportService(t, service, source)
	offer()
	end := a.terminating(t, k.Namespace)
	for _, each := range []key{k, shared} {
		w.noRecords(t, "a", each)
		a.gone(t, each)
	}
	b.gone(t, k)
	a.createsNothing(t, w, func() {
		source.Endpoints[0].Addresses[0] = "10.2.0.2"
		lab.Must(t, b.Update(t.Context(), source))
		b.endpoints(t, shared, "b 10.2.0.2:http:8080")
	})
	source.Endpoints[0].Addresses[0] = "10.2.0.1"
	lab.Must(t, b.Update(t.Context(), source))
	end()
	lab.Must(t, a.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.Namespace}}))
	a.endpoints(t, shared, "b 10.2.0.1:http:8080")
	offer()
	for _, m := range []*member{a, b} {
		if found := m.output.errors(k.Namespace); len(found) > 0 {
			t.Errorf("%s logs errors: %v", m.id, found)
		}
	}
}

// terminating deletes a namespace, which stays, without what was in it, until end is called; that returns when it is gone.
func (m *member) terminating(t *testing.T, name string) (end func()) {
	t.Helper()
	ending := &corev1.Namespace{}
	brake := func(finalizers ...string) {
		t.Helper()
		lab.Must(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
			if err := m.Get(t.Context(), key{Name: name}, ending); err != nil {
				return err
			}
			ending.Finalizers = finalizers
			return m.Update(t.Context(), ending)
		}))
	}
	brake("example.com/brake")
	lab.Must(t, m.Delete(t.Context(), ending))
	return func() {
		t.Helper()
		brake()
		eventually(t, func(ctx context.Context) error { return absent(m.Get(ctx, key{Name: name}, ending)) })
	}
}

// createsNothing does something, and fails if the member's agent then asks for any object of an import to be created, in vain or
// not. A namespace that is being deleted refuses that, and agents keep quiet about it.
func (m *member) createsNothing(t *testing.T, w *world, do func()) {
	t.Helper()
	count := func() writes {
		m.beats(t, w) // what was under way has come
		counted, err := w.writes(t.Context())
		lab.Must(t, err)
		return counted
	}
	before := count()
	do()
	for what, n := range count().since(before) {
		for _, resource := range []string{"services", "endpointslices", "serviceimports"} {
			if strings.HasPrefix(what, m.id+" "+resource+" POST ") {
				t.Errorf("%d times: %s", n, what)
			}
		}
	}
}

// testNamespacesDenied: nothing is imported into namespaces that are reserved, denied, or the agent's own, nor exported from that.
//
// spec: C1, I1
func testNamespacesDenied(t *testing.T, w *world) {
	a, b := w.members["a"], w.members["b"]
	reserved := key{Namespace: metav1.NamespaceSystem, Name: "web"}
	keys := []key{{Namespace: "denied", Name: "web"}, {Namespace: "agents", Name: "web"}}
	for _, k := range keys {
		for _, m := range []*member{a, b} {
			lab.Must(t, m.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.Namespace}}))
		}
	}
	for _, k := range append(keys, reserved) {
		a.exportService(t, clusterIPService(k, port("http", 80)))
	}
	for _, k := range keys { // it is b that does not want them
		a.imported(t, k)
	}
	witness := key{Namespace: namespace(t, a, b), Name: "witness"} // what comes later has come
	a.exportService(t, clusterIPService(witness, port("http", 80)))
	b.imported(t, witness)
	b.beats(t, w)
	for _, k := range append(keys, reserved) {
		list := &corev1.ServiceList{}
		lab.Must(t, b.List(t.Context(), list, client.InNamespace(k.Namespace), client.HasLabels{mcsv1beta1.LabelServiceName}))
		err := absent(b.Get(t.Context(), k, &mcsv1beta1.ServiceImport{}))
		if err != nil || len(list.Items) > 0 {
			t.Errorf("%s was imported: %v, %d derived Services", k, err, len(list.Items))
		}
		for _, m := range []*member{a, b} {
			if found := m.output.errors(k.Namespace); len(found) > 0 {
				t.Errorf("%s logs errors: %v", m.id, found)
			}
		}
	}
	own := key{Namespace: "agents", Name: "own"}
	b.exportService(t, clusterIPService(own, port("http", 80)))
	b.condition(t, own, valid, metav1.ConditionFalse, "NamespaceReserved")
	w.noRecords(t, "b", own)
	w.noRecords(t, "a", reserved)
	lab.Must(t, a.Delete(t.Context(), export(reserved))) // the next test finds this namespace as it is
	lab.Must(t, a.Delete(t.Context(), clusterIPService(reserved)))
}
