// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// TestLifecycle follows services through their ordinary life, between two members and their hub.
//
//nolint:tparallel // the subtests share two clusters
func TestLifecycle(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
	a.Start(t)
	b.Start(t)
	for name, test := range map[string]func(*testing.T, *env){
		"CustomController":    testCustomController,
		"PortChanges":         testPortChanges,
		"TakenOver":           testTakenOver,
		"NamesCollide":        testNamesCollide,
		"BothNamesTaken":      testBothNamesTaken,
		"OldestLeaves":        testOldestLeaves,
		"NamespaceNotAllowed": testNamespaceNotAllowed,
		"InvalidExport":       testInvalidExport,
		"HeartbeatByHand":     testHeartbeatByHand,
	} {
		t.Run(name, func(t *testing.T) { test(t, w) })
	}
}

// spec: E1, E3, I1, I2, I3, I5, D1, C1, C2, C3
func testExportWithdraw(t *testing.T, a, b *member) {
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	private := world.Service(k, world.Port("http", 80)) // b does not export it
	world.Create(t, b, private, world.Slice(private, "v4", "10.2.0.1"))
	service, _ := a.ExportWeb(t, k, "10.1.0.1", "10.1.0.2")
	for _, m := range []*member{a, b} {
		serviceImport, derived := m.Imported(t, k)
		m.Endpoints(t, k, "a 10.1.0.1:http:8080", "a 10.1.0.2:http:8080")
		lab.Equal(t, "exporters", []mcsv1beta1.ClusterStatus{{Cluster: "a"}}, serviceImport.Status.Clusters)
		if serviceImport.Status.EndpointSliceObjects != mcsv1beta1.EndpointSliceObjectsPresent {
			t.Errorf("endpointSliceObjects is %q", serviceImport.Status.EndpointSliceObjects)
		}
		if derived.Spec.Type != corev1.ServiceTypeClusterIP || derived.Spec.Selector != nil {
			t.Errorf("the derived Service has type %s and selector %v", derived.Spec.Type, derived.Spec.Selector)
		}
	}
	a.Condition(t, k, valid, metav1.ConditionTrue, "Valid")
	a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
	a.Condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")

	lab.Must(t, a.Delete(t.Context(), world.Slice(service, "v4")))
	for _, m := range []*member{a, b} { // without an endpoint the import lives on
		m.Endpoints(t, k)
		m.Imported(t, k)
	}
	before, _ := b.Imported(t, k)
	lab.Must(t, a.Delete(t.Context(), world.Export(k)))
	a.Gone(t, k)
	b.Gone(t, k)
	world.Create(t, a, world.Export(k)) // within an hour
	again, _ := b.Imported(t, k)
	lab.Equal(t, "addresses of the import that exists again", before.Spec.IPs, again.Spec.IPs)
}

// A Service without a selector has the slices that a controller of the user writes.
//
// spec: D4, D5, D7
func testCustomController(t *testing.T, w *env) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: world.Namespace(t, a, b), Name: "legacy"}
	service := world.Service(k, world.Port("http", 80))
	theirs := world.Slice(service, "v4", "10.1.0.1")
	theirs.Name = "any-name.of.theirs"
	theirs.Labels[discoveryv1.LabelManagedBy] = "controller.example.com"
	unmanaged := world.Slice(service, "by-hand", "10.1.0.2")
	delete(unmanaged.Labels, discoveryv1.LabelManagedBy)
	another := world.Slice(world.Service(key{Namespace: k.Namespace, Name: "another"}, world.Port("http", 80)), "v4", "10.1.0.3")
	a.ExportService(t, service, theirs, unmanaged, another)
	b.Endpoints(t, k, "a 10.1.0.1:http:8080", "a 10.1.0.2:http:8080")
	another.Labels[discoveryv1.LabelServiceName] = k.Name
	lab.Must(t, a.Update(t.Context(), another))
	b.Endpoints(t, k, "a 10.1.0.1:http:8080", "a 10.1.0.2:http:8080", "a 10.1.0.3:http:8080")
	delete(theirs.Labels, discoveryv1.LabelServiceName)
	lab.Must(t, a.Update(t.Context(), theirs))
	b.Endpoints(t, k, "a 10.1.0.2:http:8080", "a 10.1.0.3:http:8080")
}

// The target, the number and the name of a port change one after the other. The slices follow, also where the EndpointSlice
// controller is late, and no port that was is left.
//
// spec: D7, R2, I5
func testPortChanges(t *testing.T, w *env) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	service := world.Service(k, world.Port("http", 80), world.Port("admin", 9090))
	source := world.Slice(service, "v4", "10.1.0.1")
	a.ExportService(t, service, source)
	b.Endpoints(t, k, "a 10.1.0.1:http:8080", "a 10.1.0.1:admin:17090")
	before, _ := b.Imported(t, k)
	follow := func() {
		t.Helper()
		source.Ports = world.Slice(service, "v4").Ports
		lab.Must(t, a.Update(t.Context(), source))
	}

	service.Spec.Ports[0].TargetPort = intstr.FromInt32(7000)
	lab.Must(t, a.Update(t.Context(), service))
	follow()
	b.Endpoints(t, k, "a 10.1.0.1:http:7000", "a 10.1.0.1:admin:17090")
	b.ports(t, k, "http:80", "admin:9090")

	service.Spec.Ports[0].Port = 81 // the endpoints do not change
	lab.Must(t, a.Update(t.Context(), service))
	b.ports(t, k, "http:81", "admin:9090")
	b.Endpoints(t, k, "a 10.1.0.1:http:7000", "a 10.1.0.1:admin:17090")

	service.Spec.Ports[0].Name = "web"
	lab.Must(t, a.Update(t.Context(), service))
	b.ports(t, k, "web:81", "admin:9090")
	b.Endpoints(t, k, "a 10.1.0.1:admin:17090") // the slice still says http, which is no port any more
	follow()
	b.Endpoints(t, k, "a 10.1.0.1:web:7000", "a 10.1.0.1:admin:17090")

	service.Spec.Ports = []corev1.ServicePort{service.Spec.Ports[0]}
	lab.Must(t, a.Update(t.Context(), service))
	b.ports(t, k, "web:81")
	b.Endpoints(t, k, "a 10.1.0.1:web:7000") // the slice still has the other
	service.Spec.Ports[0].Name = ""
	lab.Must(t, a.Update(t.Context(), service))
	follow()
	b.Endpoints(t, k, "a 10.1.0.1:unnamed:7000", "a 10.1.0.1::7000")
	after, _ := b.Imported(t, k)
	lab.Equal(t, "addresses", before.Spec.IPs, after.Spec.IPs)
}

// ports waits until an import and its derived Service have these "name:number" ports.
func (m *member) ports(t *testing.T, k key, want ...string) {
	t.Helper()
	m.ImportedWith(t, k, func(serviceImport *mcsv1beta1.ServiceImport, derived *corev1.Service) error {
		var inImport, inService []string
		for _, p := range serviceImport.Spec.Ports {
			inImport = append(inImport, fmt.Sprintf("%s:%d", p.Name, p.Port))
		}
		for _, p := range derived.Spec.Ports {
			inService = append(inService, fmt.Sprintf("%s:%d", p.Name, p.Port))
		}
		if diff := cmp.Diff([][]string{want, want}, [][]string{inImport, inService}); diff != "" {
			return fmt.Errorf("ports of it and of its derived Service (-want +got):\n%s", diff)
		}
		return nil
	})
}

// untouched fails the test if a Service is not as it was last written.
func (m *member) untouched(t *testing.T, want *corev1.Service) {
	t.Helper()
	got := world.Read(t, m, client.ObjectKeyFromObject(want), &corev1.Service{})
	lab.Equal(t, fmt.Sprintf("%s: the source Service changed", m.ID), want, got)
}

// becomes waits until an import, its derived Service of this name and its slices are of a type.
func (m *member) becomes(t *testing.T, k key, derivedName string, want mcsv1beta1.ServiceImportType) {
	t.Helper()
	m.ImportedWith(t, k, func(serviceImport *mcsv1beta1.ServiceImport, derived *corev1.Service) error {
		if serviceImport.Spec.Type != want {
			return fmt.Errorf("it is %s, want %s", serviceImport.Spec.Type, want)
		}
		ips := derived.Spec.ClusterIPs
		if want == mcsv1beta1.Headless {
			if diff := cmp.Diff([]string{corev1.ClusterIPNone}, ips); diff != "" {
				return fmt.Errorf("addresses of the derived Service (-want +got):\n%s", diff)
			}
			ips = nil
		} else if len(ips) != 2 {
			return fmt.Errorf("the derived Service has addresses %v", ips)
		}
		if diff := cmp.Diff(ips, serviceImport.Spec.IPs); diff != "" {
			return fmt.Errorf("its addresses (-want +got):\n%s", diff)
		}
		for _, s := range m.Slices(t, k) {
			if _, marked := s.Labels[corev1.IsHeadlessService]; marked != (want == mcsv1beta1.Headless) || s.Labels[discoveryv1.LabelServiceName] != derivedName {
				return fmt.Errorf("labels of slice %s are %v", s.Name, s.Labels)
			}
		}
		if derived.Name != derivedName {
			return fmt.Errorf("the derived Service is called %s, want %s", derived.Name, derivedName)
		}
		return nil
	})
}
