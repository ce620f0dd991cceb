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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// testHeartbeatByHand: a heartbeat that a user edits or deletes is restored, and imports do not change,
// not even when it says that another cluster bears the member's ID.
//
// spec: I2, K2
func testHeartbeatByHand(t *testing.T, w *env) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	a.ExportWeb(t, k, "10.1.0.1")
	b.Endpoints(t, k, "a 10.1.0.1:http:8080")
	a.Condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
	w.settled(t)
	before := w.versions(t, k)
	world.Eventually(t, func(ctx context.Context) error { return a.says(ctx, w, hubv1alpha1.PublicationComplete) })
	name := key{Namespace: "member-a", Name: hubv1alpha1.HeartbeatName}
	want := world.Read(t, w.HubClient, name, &hubv1alpha1.Heartbeat{})

	edit := func(what string, change func(*hubv1alpha1.HeartbeatSpec)) {
		t.Helper()
		heartbeat := &hubv1alpha1.Heartbeat{}
		world.Update(t, w.HubClient, name, heartbeat, func() { change(&heartbeat.Spec) })
		w.hasHeartbeat(t, want, what)
	}
	edit("partial", func(h *hubv1alpha1.HeartbeatSpec) { h.Publication = hubv1alpha1.PublicationPartial })
	edit("other agent", func(h *hubv1alpha1.HeartbeatSpec) { h.AgentVersion, h.Services = "v0", 7 })
	lab.Must(t, w.HubClient.Delete(t.Context(), want.DeepCopy()))
	w.hasHeartbeat(t, want, "deleted")
	w.settled(t)
	lab.Equal(t, fmt.Sprintf("what was written of %s without need", k), before, w.versions(t, k))

	edit("rival", func(h *hubv1alpha1.HeartbeatSpec) { h.ClusterUID = "somebody-else" })
	a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
	b.Endpoints(t, k, "a 10.1.0.1:http:8080")
	serviceImport, _ := b.Imported(t, k)
	late := key{Namespace: k.Namespace, Name: "late"} // it publishes again
	a.ExportWeb(t, late)
	b.Imported(t, late)
	if after, _ := b.Imported(t, k); after.UID != serviceImport.UID {
		t.Errorf("the import was replaced")
	}
}

// hasHeartbeat waits until a member's heartbeat says the same as another, at whatever time.
func (w *env) hasHeartbeat(t *testing.T, want *hubv1alpha1.Heartbeat, what string) {
	t.Helper()
	world.Await(t, w.HubClient, client.ObjectKeyFromObject(want), &hubv1alpha1.Heartbeat{}, func(got *hubv1alpha1.Heartbeat) error {
		got.Spec.RenewTime = want.Spec.RenewTime
		// A list lets it know the versions.
		got.Spec.ServicesVersion, got.Spec.EndpointsVersion = want.Spec.ServicesVersion, want.Spec.EndpointsVersion
		if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
			return fmt.Errorf("%s: the heartbeat is not put right (-want +got):\n%s", what, diff)
		}
		return nil
	})
}

// testRecordsByHand: what the hub's administrator edits or deletes of a member's records comes back, and with it what
// the importers lost meanwhile.
//
// spec: I2, I7
func testRecordsByHand(t *testing.T, w *env) {
	a, b, hub := w.members["a"], w.members["b"], &member{&world.Member{Client: w.HubClient, ID: "hub"}}
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	source, _ := a.ExportWeb(t, k, "10.1.0.1")
	lab.Must(t, a.Create(t.Context(), world.Slice(source, "v6", "fd00:1::1")))
	whole := []string{"a 10.1.0.1:http:8080", "a fd00:1::1:http:8080"}
	b.Endpoints(t, k, whole...)
	imported, _ := b.Imported(t, k)
	service := w.record(t, "a", k)
	endpoints := w.publishedEndpoints(t, "a", k)
	if len(endpoints) != 2 {
		t.Fatalf("%d records of endpoints, want 2", len(endpoints))
	}
	restored := func(what string) {
		t.Helper()
		hub.restored(t, what, service, endpoints[0], endpoints[1])
		b.Endpoints(t, k, whole...)
		b.restored(t, what, imported)
	}
	edit := func(object client.Object, change func()) {
		t.Helper()
		world.Update(t, hub, client.ObjectKeyFromObject(object), object, change)
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
	b.Endpoints(t, k, whole...)
	b.Imported(t, k)
	a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
	a.Condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
}

func (w *env) record(t *testing.T, id string, k key) *hubv1alpha1.PublishedService {
	t.Helper()
	return world.Read(t, w.HubClient, key{Namespace: "member-" + id, Name: k.Namespace + "." + k.Name}, &hubv1alpha1.PublishedService{})
}

func (w *env) publishedEndpoints(t *testing.T, id string, k key) []*hubv1alpha1.PublishedEndpoints {
	t.Helper()
	list := world.List(t, w.HubClient, &hubv1alpha1.PublishedEndpointsList{}, client.InNamespace("member-"+id))
	var found []*hubv1alpha1.PublishedEndpoints
	for i := range list.Items {
		if s := list.Items[i].Spec; string(s.Namespace) == k.Namespace && string(s.Service) == k.Name {
			found = append(found, &list.Items[i])
		}
	}
	return found
}

// testUnknownRecords: a record that is in a member's namespace and that the member does not export is removed.
//
// spec: E1, E3
func testUnknownRecords(t *testing.T, w *env) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: world.Namespace(t, a, b), Name: "ghost"}
	lab.Must(t, a.Create(t.Context(), world.Service(k, world.Port("http", 80)))) // there, but not exported
	w.Publish(t, "a", k, nil, "10.1.0.1")
	w.noRecords(t, "a", k)
	witness := key{Namespace: k.Namespace, Name: "witness"} // what comes later has come
	a.ExportWeb(t, witness)
	b.Imported(t, witness)
	b.Gone(t, k)
}

// noRecords waits until the hub holds nothing of some services of a member, and lists nothing of them to an agent that starts and asks for
// what the API server has cached: that agent would take a deletion that it saw later for a real one.
func (w *env) noRecords(t *testing.T, id string, keys ...key) {
	t.Helper()
	for _, k := range keys {
		w.noRecord(t, id, k)
	}
}

func (w *env) noRecord(t *testing.T, id string, k key) {
	t.Helper()
	world.Eventually(t, func(ctx context.Context) error {
		name := key{Namespace: "member-" + id, Name: k.Namespace + "." + k.Name}
		if err := world.Absent(w.HubClient.Get(ctx, name, &hubv1alpha1.PublishedService{})); err != nil {
			return fmt.Errorf("record of %s: %w", k, err)
		}
		if left := w.publishedEndpoints(t, id, k); len(left) > 0 {
			return fmt.Errorf("%d records of endpoints of %s are left", len(left), k)
		}
		kinds := []client.ObjectList{&hubv1alpha1.PublishedServiceList{}, &hubv1alpha1.PublishedEndpointsList{}}
		return world.Each(ctx, w.HubClient, kinds, func(o client.Object) error {
			if o.GetName() == name.Name || strings.HasPrefix(o.GetName(), name.Name+".") {
				return fmt.Errorf("the cached record %s is left", o.GetName())
			}
			return nil
		}, &client.ListOptions{Namespace: name.Namespace, Raw: &metav1.ListOptions{ResourceVersion: "0"}})
	})
}

// testRecreatedAtOnce: Services and exports that are deleted and created again at once, of another type too, end as what
// they are last, once, and under the derived name that they had.
//
// spec: E6, D2, I7
func testRecreatedAtOnce(t *testing.T, w *env) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	plain, headless := world.Service(k, world.Port("http", 80)), world.Headless(k, world.Port("http", 80))
	elsewhere := &corev1.Service{
		ObjectMeta: plain.ObjectMeta,
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"},
	}
	a.ExportService(t, plain.DeepCopy(), world.Slice(plain, "v4", "10.1.0.1"))
	_, derived := b.Imported(t, k)
	for round := range 12 {
		next := []*corev1.Service{plain, headless, plain, elsewhere}[(round+1)%4]
		lab.Must(t, a.Delete(t.Context(), plain.DeepCopy()))
		if round%2 == 0 {
			lab.Must(t, a.Delete(t.Context(), world.Export(k)))
		}
		lab.Must(t, a.Create(t.Context(), next.DeepCopy()))
		if round%2 == 0 {
			lab.Must(t, a.Create(t.Context(), world.Export(k)))
		}
		if round%5 == 4 { // let it come through now and then
			a.Condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
		}
	}
	lab.Must(t, a.Delete(t.Context(), plain.DeepCopy()))
	lab.Must(t, a.Create(t.Context(), world.Service(k, world.Port("http", 81)))) // unlike the first
	a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
	b.Endpoints(t, k, "a 10.1.0.1:http:8080")
	world.Eventually(t, func(ctx context.Context) error {
		serviceImport, after := b.Imported(t, k)
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
		if mirrored, err := b.Mirrored(ctx, k); err != nil || len(mirrored) != 1 || len(services.Items) != 1 {
			return fmt.Errorf("%d Services and %d mirrored slices (%w), want one each", len(services.Items), len(mirrored), err)
		}
		return nil
	})
	w.calm(t, k)
	for _, m := range []*member{a, b} {
		world.LogsNoErrors(t, m.Member, k.Namespace)
	}
}

// calm waits until nothing of a service has been written for two heartbeats of all members.
func (w *env) calm(t *testing.T, k key) {
	t.Helper()
	world.Eventually(t, func(context.Context) error {
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
