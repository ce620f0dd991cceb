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
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
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
	if after := w.versions(t, d.key("kept")); after != before {
		t.Errorf("objects of a service to which nothing happened were written:\n%s\nbefore:\n%s", after, before)
	}
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
	edit := func(object client.Object, name string, change func()) {
		t.Helper()
		world.Update(t, b, d.key(name), object, change)
	}
	mirror := func(name string) *discoveryv1.EndpointSlice {
		t.Helper()
		mirrored, err := b.Mirrored(t.Context(), d.key(name))
		lab.Must(t, err)
		if len(mirrored) == 0 {
			t.Fatalf("b holds no slice of %s", name)
		}
		return &mirrored[0]
	}
	serviceImport, derived := b.Imported(t, d.key("edited"))
	edit(serviceImport, "edited", func() { serviceImport.Spec.Ports[0].Port, serviceImport.Annotations = 1, nil })
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
	lab.Must(t, b.Delete(t.Context(), mirror("lost")))
	lab.Must(t, b.Delete(t.Context(), derived))
	lab.Must(t, b.Delete(t.Context(), serviceImport))

	lab.Must(t, b.Delete(t.Context(), world.Export(d.key("own"))))
	lab.Must(t, a.Delete(t.Context(), world.Export(d.key("unexported"))))
	lab.Must(t, a.Delete(t.Context(), world.Export(d.key("shared"))))
	d.end(t, b)
	a.Gone(t, d.key("unexported"))
}

func (d *downtime) afterImporterWasDown(t *testing.T, a, b *member) {
	t.Helper()
	for _, name := range []string{"edited", "relabelled", "lost"} {
		b.Endpoints(t, d.key(name), d.endpoint(a))
		world.Eventually(t, func(context.Context) error {
			serviceImport, derived := b.Imported(t, d.key(name))
			if serviceImport.Spec.Ports[0].Port != 80 || derived.Spec.Ports[0].Port != 80 || derived.Labels["mine"] != "" {
				return fmt.Errorf("%s: the import is %+v and the derived Service %+v", name, serviceImport.Spec, derived.Spec)
			}
			return nil
		})
	}
	for _, object := range d.unmarked {
		b.restored(t, "what bore no labels", object)
	}
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
	lab.Must(t, a.Delete(t.Context(), world.Export(d.key("undone"))))
	lab.Must(t, a.Delete(t.Context(), world.Slice(world.Service(d.key("emptied")), "v4")))
	lab.Must(t, a.Delete(t.Context(), world.Service(d.key("lost"))))
	d.end(t, a)

	d.world.Publish(t, "a", d.key("ghost"), nil, d.address(a)) // left over from an earlier life
	hub := d.world.HubClient
	record := d.world.record(t, "a", d.key("edited"))
	record.Spec.Ports[0].Port = 1
	lab.Must(t, hub.Update(t.Context(), record))
	lab.Must(t, hub.Delete(t.Context(), d.world.publishedEndpoints(t, "a", d.key("relabelled"))[0]))
	lab.Must(t, hub.Delete(t.Context(), &hubv1alpha1.PublishedService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: d.namespace + ".odd"},
	}))
}

func (d *downtime) afterExporterWasDown(t *testing.T, a, b *member) {
	t.Helper()
	a.Condition(t, d.key("lost"), valid, metav1.ConditionFalse, "NoService")
	for _, m := range []*member{a, b} {
		m.Gone(t, d.key("undone"))
		m.Gone(t, d.key("lost"))
		m.Gone(t, d.key("ghost"))
		m.Gone(t, key{Namespace: d.ending, Name: "last"})
		m.Imported(t, d.key("emptied"))
		m.Endpoints(t, d.key("emptied"))
		m.Endpoints(t, d.key("relabelled"), d.endpoint(a))
		m.Endpoints(t, d.key("odd"), d.endpoint(a))
		m.Imported(t, d.key("odd"))
		world.Eventually(t, func(context.Context) error {
			if serviceImport, _ := m.Imported(t, d.key("edited")); serviceImport.Spec.Ports[0].Port != 80 {
				return fmt.Errorf("the import in %s is %+v", m.ID, serviceImport.Spec)
			}
			return nil
		})
	}
	for _, name := range []string{"undone", "ghost"} {
		d.world.noRecords(t, "a", d.key(name))
	}
	record := d.world.record(t, "a", d.key("lost"))
	if !record.Spec.Inactive { // it keeps the age of the ServiceExport that is still there
		t.Errorf("the record of a ServiceExport without a Service is %+v, want it inactive", record.Spec)
	}
	d.world.noRecords(t, "a", key{Namespace: d.ending, Name: "last"})
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
