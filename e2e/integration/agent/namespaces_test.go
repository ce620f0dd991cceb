// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// TestNamespaces: what agents do if a namespace is deleted, recreated or not allowed.
//
//nolint:tparallel // the subtests share two clusters
func TestNamespaces(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
	a.Start(t)
	b.Start(t, func(o *agent.Options) { o.DenyNamespaces, o.Namespace = []string{"denied"}, "agents" })
	for name, test := range map[string]func(*testing.T, *env){
		"ExporterTerminating": testExporterTerminating,
		"NotImported":         testDenied,
	} {
		t.Run(name, func(t *testing.T) { test(t, w) })
	}
}

// testImporterTerminating: into a namespace that is being deleted, for however long, nothing is written; it is filled again when
// it has been created anew.
//
// spec: E8, I1
func testImporterTerminating(t *testing.T, w *env) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	_, source := a.ExportWeb(t, k, "10.1.0.1")
	b.Endpoints(t, k, "a 10.1.0.1:http:8080")
	b.Imported(t, k)
	end := b.terminating(t, k.Namespace)
	b.Gone(t, k)

	late := key{Namespace: k.Namespace, Name: "late"}
	b.createsNothing(t, w, func() {
		source.Endpoints[0].Addresses[0] = "10.1.0.2"
		lab.Must(t, a.Update(t.Context(), source))
		a.ExportWeb(t, late)
		a.Condition(t, late, conflict, metav1.ConditionFalse, "NoConflicts")
		a.Endpoints(t, k, "a 10.1.0.2:http:8080")
	})
	end()
	world.LogsNoErrors(t, b.Member, k.Namespace)
	world.CreateNamespace(t, k.Namespace, b)
	b.Imported(t, late)
	b.Endpoints(t, k, "a 10.1.0.2:http:8080")
}

// testExporterTerminating: with its namespace, however long that takes to go, a cluster's exports are withdrawn from the hub and
// everywhere, and nothing is imported into what is left of it. All is back when both have been created anew.
//
// spec: E6, E8, E3
func testExporterTerminating(t *testing.T, w *env) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	shared := key{Namespace: k.Namespace, Name: "shared"}
	offer := func() {
		t.Helper()
		lab.Must(t, a.ExportOne(t.Context(), k))
		lab.Must(t, a.ExportOne(t.Context(), shared))
		b.Endpoints(t, k, "a 10.1.0.1:http:8080")
		for _, m := range []*member{a, b} {
			m.Imported(t, k)
			m.Imported(t, shared)
			m.Endpoints(t, shared, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
		}
	}
	_, source := b.ExportWeb(t, shared, "10.2.0.1")
	offer()
	end := a.terminating(t, k.Namespace)
	w.noRecords(t, "a", k, shared)
	a.Gone(t, k, shared)
	b.Gone(t, k)
	a.createsNothing(t, w, func() {
		source.Endpoints[0].Addresses[0] = "10.2.0.2"
		lab.Must(t, b.Update(t.Context(), source))
		b.Endpoints(t, shared, "b 10.2.0.2:http:8080")
	})
	source.Endpoints[0].Addresses[0] = "10.2.0.1"
	lab.Must(t, b.Update(t.Context(), source))
	end()
	world.CreateNamespace(t, k.Namespace, a)
	a.Endpoints(t, shared, "b 10.2.0.1:http:8080")
	offer()
	for _, m := range []*member{a, b} {
		world.LogsNoErrors(t, m.Member, k.Namespace)
	}
}

// terminating deletes a namespace, which stays, without what was in it, until end is called; that returns when it is gone.
func (m *member) terminating(t *testing.T, name string) (end func()) {
	t.Helper()
	ending := &corev1.Namespace{}
	brake := func(finalizers ...string) {
		t.Helper()
		world.Update(t, m, key{Name: name}, ending, func() { ending.Finalizers = finalizers })
	}
	brake("example.com/brake")
	lab.Must(t, m.Delete(t.Context(), ending))
	return func() {
		t.Helper()
		brake()
		world.Eventually(t, func(ctx context.Context) error { return world.Absent(m.Get(ctx, key{Name: name}, ending)) })
	}
}

// createsNothing does something, and fails if the member's agent then asks for any object of an import to be created, in vain or
// not. A namespace that is being deleted refuses that, and agents keep quiet about it.
func (m *member) createsNothing(t *testing.T, w *env, do func()) {
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
			if strings.HasPrefix(what, m.ID+" "+resource+" POST ") {
				t.Errorf("%d times: %s", n, what)
			}
		}
	}
}

// testDenied: nothing is imported into namespaces that are reserved, denied, or the agent's own, nor exported from that.
//
// spec: C1, I1
func testDenied(t *testing.T, w *env) {
	a, b := w.members["a"], w.members["b"]
	reserved := key{Namespace: metav1.NamespaceSystem, Name: "web"}
	keys := []key{{Namespace: "denied", Name: "web"}, {Namespace: "agents", Name: "web"}}
	for _, k := range keys {
		world.CreateNamespace(t, k.Namespace, a, b)
	}
	for _, k := range append(keys, reserved) {
		a.ExportWeb(t, k)
	}
	for _, k := range keys { // it is b that does not want them
		a.Imported(t, k)
	}
	witness := key{Namespace: world.Namespace(t, a, b), Name: "witness"} // what comes later has come
	a.ExportWeb(t, witness)
	b.Imported(t, witness)
	b.beats(t, w)
	for _, k := range append(keys, reserved) {
		list := world.List(t, b, &corev1.ServiceList{}, client.InNamespace(k.Namespace), client.HasLabels{mcsv1beta1.LabelServiceName})
		err := world.Absent(b.Get(t.Context(), k, &mcsv1beta1.ServiceImport{}))
		if err != nil || len(list.Items) > 0 {
			t.Errorf("%s was imported: %v, %d derived Services", k, err, len(list.Items))
		}
		for _, m := range []*member{a, b} {
			world.LogsNoErrors(t, m.Member, k.Namespace)
		}
	}
	own := key{Namespace: "agents", Name: "own"}
	b.ExportWeb(t, own)
	b.Condition(t, own, valid, metav1.ConditionFalse, "NamespaceReserved")
	w.noRecords(t, "b", own)
	w.noRecords(t, "a", reserved)
	world.Delete(t, a, world.Export(reserved), world.Service(reserved)) // the next test finds this namespace as it is
}

// TestDeniedLater: a namespace that is denied, or not allowed, when it has imports already is cleared of them when the agent starts,
// and of nothing else.
//
// spec: I1, I7
func TestDeniedLater(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
	a.Start(t)
	stop := b.Start(t)
	ns := world.Namespace(t, a, b)
	world.CreateNamespace(t, "private", a, b)
	kept, denied := key{Namespace: ns, Name: "web"}, key{Namespace: "private", Name: "web"}
	for _, k := range []key{kept, denied} {
		a.ExportWeb(t, k, "10.1.0.1")
		b.Endpoints(t, k, "a 10.1.0.1:http:8080")
		b.Imported(t, k)
	}
	w.settled(t)
	before := w.versions(t, kept)
	stop()
	mine := world.Service(key{Namespace: "private", Name: "mine"}, world.Port("http", 80))
	lab.Must(t, b.Create(t.Context(), mine))
	stop = b.Start(t, func(o *agent.Options) { o.DenyNamespaces = []string{"private"} })
	b.Gone(t, denied)
	w.settled(t)
	lab.Equal(t, fmt.Sprintf("what was written of %s without need", kept), before, w.versions(t, kept))
	lab.Must(t, b.Get(t.Context(), client.ObjectKeyFromObject(mine), mine))
	stop()
	stop = b.Start(t)
	b.Endpoints(t, denied, "a 10.1.0.1:http:8080") // admitted again
	b.Imported(t, denied)
	stop()
	b.Start(t, func(o *agent.Options) { o.AllowNamespaces = []string{ns} })
	b.Gone(t, denied)
	lab.Equal(t, fmt.Sprintf("what was written of %s though it is allowed", kept), before, w.versions(t, kept))
}
