// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// TestAgentDown: what happens in a cluster, on the hub and elsewhere while an agent is down is made up for when it starts,
// in all clusters, and nothing else is touched.
//
// spec: E1, E3, E6, E8, I1, I2, I7, D7
func TestAgentDown(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
	d := &downtime{world: w, namespace: world.Namespace(t, a, b), ending: "ending"}
	world.CreateNamespace(t, d.ending, a, b)
	stopA, stopB := a.Start(t), b.Start(t)
	for _, name := range []string{"kept", "shared", "unexported", "undone", "emptied", "edited", "relabelled", "unmarked", "lost", "odd"} {
		d.export(t, a, name)
	}
	for _, name := range []string{"shared", "own"} {
		d.export(t, b, name)
	}
	last := key{Namespace: d.ending, Name: "last"}
	a.ExportWeb(t, last, d.address(a))
	b.Imported(t, last)
	for _, m := range []*member{a, b} {
		m.Endpoints(t, d.key("shared"), d.endpoint(a), d.endpoint(b))
	}
	w.settled(t)
	before := w.versions(t, d.key("kept"))

	stopB()
	d.whileImporterIsDown(t, a, b)
	b.Start(t)
	d.afterImporterWasDown(t, a, b)

	stopA()
	d.whileExporterIsDown(t, a)
	a.Start(t)
	d.afterExporterWasDown(t, a, b)

	w.settled(t)
	lab.Equal(t, "what was written of a service to which nothing happened", before, w.versions(t, d.key("kept")))
	for _, m := range []*member{a, b} {
		world.LogsNoErrors(t, m.Member, d.namespace, d.ending)
	}
}

// downtime is the story of TestAgentDown.
type downtime struct {
	world             *env
	namespace, ending string
	// unmarked is what b held of the service of that name before all labels were taken from it.
	unmarked []client.Object
}

func (d *downtime) key(name string) key { return key{Namespace: d.namespace, Name: name} }

func (d *downtime) address(m *member) string {
	return map[string]string{"a": "10.1.0.1", "b": "10.2.0.1"}[m.ID]
}

// endpoint returns what a member contributes to a service, as member.endpoints has it.
func (d *downtime) endpoint(m *member) string { return m.ID + " " + d.address(m) + ":http:8080" }

// export has a member export a service with one endpoint, and waits until that is imported everywhere.
func (d *downtime) export(t *testing.T, m *member, name string) {
	t.Helper()
	m.ExportWeb(t, d.key(name), d.address(m))
	m.Condition(t, d.key(name), conflict, metav1.ConditionFalse, "NoConflicts")
	for _, other := range d.world.members {
		other.Imported(t, d.key(name))
		world.Eventually(t, func(ctx context.Context) error {
			mirrored, err := other.Mirrored(ctx, d.key(name))
			if err == nil && !slices.ContainsFunc(mirrored, func(s discoveryv1.EndpointSlice) bool { return s.Labels[mcsv1beta1.LabelSourceCluster] == m.ID }) {
				err = fmt.Errorf("%s holds no slice of %s of %s", other.ID, name, m.ID)
			}
			return err
		})
	}
}

// whileImporterIsDown deletes, edits and withdraws what b's agent would notice.
func (d *downtime) whileImporterIsDown(t *testing.T, a, b *member) {
	t.Helper()
	mirror := func(name string) *discoveryv1.EndpointSlice {
		t.Helper()
		mirrored := b.Slices(t, d.key(name))
		if len(mirrored) == 0 {
			t.Fatalf("b holds no slice of %s", name)
		}
		return &mirrored[0]
	}
	serviceImport, derived := b.Imported(t, d.key("edited"))
	world.Update(t, b, d.key("edited"), serviceImport, func() { serviceImport.Spec.Ports[0].Port, serviceImport.Annotations = 1, nil })
	derived.Spec.Ports[0].Port, derived.Labels["mine"] = 1, "yes"
	lab.Must(t, b.Update(t.Context(), derived))
	edited := mirror("edited")
	edited.Endpoints[0].Addresses[0] = "10.9.9.9"
	lab.Must(t, b.Update(t.Context(), edited))
	relabelled := mirror("relabelled")
	delete(relabelled.Labels, mcsv1beta1.LabelServiceName)
	lab.Must(t, b.Update(t.Context(), relabelled))
	d.unmarked = b.holdings(t, d.key("unmarked"))
	for _, object := range d.unmarked {
		unmarked := object.DeepCopyObject().(client.Object)
		unmarked.SetLabels(nil)
		lab.Must(t, b.Update(t.Context(), unmarked))
	}
	serviceImport, derived = b.Imported(t, d.key("lost"))
	world.Delete(t, b, mirror("lost"), derived, serviceImport, world.Export(d.key("own")))
	world.Delete(t, a, world.Export(d.key("unexported")), world.Export(d.key("shared")))
	d.end(t, b)
	a.Gone(t, d.key("unexported"))
}

func (d *downtime) afterImporterWasDown(t *testing.T, a, b *member) {
	t.Helper()
	for _, name := range []string{"edited", "relabelled", "lost"} {
		b.Endpoints(t, d.key(name), d.endpoint(a))
		b.ImportedWith(t, d.key(name), func(serviceImport *mcsv1beta1.ServiceImport, derived *corev1.Service) error {
			if serviceImport.Spec.Ports[0].Port != 80 || derived.Spec.Ports[0].Port != 80 || derived.Labels["mine"] != "" {
				return fmt.Errorf("it is %+v and the derived Service %+v", serviceImport.Spec, derived.Spec)
			}
			return nil
		})
	}
	b.restored(t, "what bore no labels", d.unmarked...)
	ofA := client.MatchingLabels{mcsv1beta1.LabelSourceCluster: "a"}
	for _, s := range world.List(t, b, &discoveryv1.EndpointSliceList{}, client.InNamespace(d.namespace), ofA).Items {
		if s.Labels[mcsv1beta1.LabelServiceName] == "" {
			t.Errorf("slice %s of no member is left", s.Name)
		}
	}
	b.Gone(t, d.key("unexported"))
	for _, m := range []*member{a, b} {
		m.Endpoints(t, d.key("shared"), d.endpoint(b))
		m.Gone(t, d.key("own"))
	}
	d.world.noRecords(t, "b", d.key("own"))
	world.CreateNamespace(t, d.ending, b)
	b.Endpoints(t, key{Namespace: d.ending, Name: "last"}, d.endpoint(a))
}

// whileExporterIsDown deletes, edits and adds what a's agent would notice.
func (d *downtime) whileExporterIsDown(t *testing.T, a *member) {
	t.Helper()
	world.Delete(t, a, world.Export(d.key("undone")), world.Slice(world.Service(d.key("emptied")), "v4"), world.Service(d.key("lost")))
	d.end(t, a)

	d.world.Publish(t, "a", d.key("ghost"), nil, d.address(a)) // left over from an earlier life
	hub := d.world.HubClient
	record := d.world.record(t, "a", d.key("edited"))
	record.Spec.Ports[0].Port = 1
	lab.Must(t, hub.Update(t.Context(), record))
	world.Delete(t, hub, d.world.publishedEndpoints(t, "a", d.key("relabelled"))[0], d.world.record(t, "a", d.key("odd")))
}

func (d *downtime) afterExporterWasDown(t *testing.T, a, b *member) {
	t.Helper()
	a.Condition(t, d.key("lost"), valid, metav1.ConditionFalse, "NoService")
	for _, m := range []*member{a, b} {
		m.Gone(t, d.key("undone"), d.key("lost"), d.key("ghost"), key{Namespace: d.ending, Name: "last"})
		m.Imported(t, d.key("emptied"))
		m.Endpoints(t, d.key("emptied"))
		m.Endpoints(t, d.key("relabelled"), d.endpoint(a))
		m.Endpoints(t, d.key("odd"), d.endpoint(a))
		m.Imported(t, d.key("odd"))
		m.ports(t, d.key("edited"), "http:80")
	}
	d.world.noRecords(t, "a", d.key("undone"), d.key("ghost"), key{Namespace: d.ending, Name: "last"})
	record := d.world.record(t, "a", d.key("lost"))
	if !record.Spec.Inactive { // it keeps the age of the ServiceExport that is still there
		t.Errorf("the record of a ServiceExport without a Service is %+v, want it inactive", record.Spec)
	}
}

// end deletes a namespace and waits until it is gone.
func (d *downtime) end(t *testing.T, m *member) {
	t.Helper()
	ending := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.ending}}
	lab.Must(t, m.Delete(t.Context(), ending))
	world.Eventually(t, func(ctx context.Context) error {
		return world.Absent(m.Get(ctx, client.ObjectKeyFromObject(ending), ending))
	})
}
