// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		"DualStack":           testDualStack,
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

// spec: E1, E3, I1, I2, I3, D1, C1, C2, C3
func testExportWithdraw(t *testing.T, a, b *member) {
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	private := world.Service(k, world.Port("http", 80)) // b does not export it
	lab.Must(t, b.Create(t.Context(), private))
	lab.Must(t, b.Create(t.Context(), world.Slice(private, "v4", "10.2.0.1")))
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
	lab.Must(t, a.Delete(t.Context(), world.Export(k)))
	a.Gone(t, k)
	b.Gone(t, k)
}

// spec: E4, I4, I5, I8, D1, D2, D3, D4, D5, R2
func testDualStack(t *testing.T, w *env) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: world.Namespace(t, a, b), Name: "web-service"}
	unnamed := world.Port("", 80)
	unnamed.AppProtocol = new("http")
	service := world.Service(k, unnamed)
	service.Spec.Type, service.Spec.ExternalIPs = corev1.ServiceTypeLoadBalancer, []string{"192.0.2.7"} // stays in its cluster
	a.ExportService(t, service,
		world.Slice(service, "v4", "10.1.0.1"),
		world.Slice(service, "v4b", "10.1.0.2"),
		world.Slice(service, "v6", "fd00:1::1"))
	serviceImport, derived := b.Imported(t, k)
	if derived.Name != "derived-435094621" || derived.Spec.Type != corev1.ServiceTypeClusterIP || len(derived.Spec.ExternalIPs) > 0 {
		t.Errorf("the derived Service %s is %+v", derived.Name, derived.Spec)
	}
	a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
	a.untouched(t, service)
	wantPorts := []mcsv1beta1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80, AppProtocol: new("http")}}
	lab.Equal(t, "ports of the import", wantPorts, serviceImport.Spec.Ports)
	lab.Equal(t, "families", []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, serviceImport.Spec.IPFamilies)
	if diff := cmp.Diff(derived.Spec.ClusterIPs, serviceImport.Spec.IPs); diff != "" || len(serviceImport.Spec.IPs) != 2 {
		t.Errorf("ips of the import and of the derived Service (-want +got):\n%s", diff)
	}
	wantLabels := map[string]string{
		"multicluster.kubernetes.io/service-name":     "web-service",
		"multicluster.kubernetes.io/service-imported": "true",
		"app.kubernetes.io/managed-by":                "tombolo-mcs.io",
	}
	lab.Equal(t, "labels of the derived Service", wantLabels, derived.Labels)
	b.Endpoints(t, k, "a 10.1.0.1:unnamed:8080", "a 10.1.0.2:unnamed:8080", "a fd00:1::1:unnamed:8080")
	mirrored, err := b.Mirrored(t.Context(), k)
	lab.Must(t, err)
	for _, s := range mirrored {
		want := map[string]string{
			"kubernetes.io/service-name":                "derived-435094621",
			"multicluster.kubernetes.io/service-name":   "web-service",
			"multicluster.kubernetes.io/source-cluster": "a",
			"endpointslice.kubernetes.io/managed-by":    "tombolo-mcs.io",
		}
		lab.Equal(t, fmt.Sprintf("labels of slice %s", s.Name), want, s.Labels)
	}
}

// spec: E4, I5, I6, D1, D4, D6, R2
func testHeadless(t *testing.T, a, b *member) {
	k := key{Namespace: world.Namespace(t, a, b), Name: "db"}
	service := world.Headless(k, world.Port("", 5432))
	source := world.Slice(service, "v4", "10.1.0.1", "10.1.0.2")
	source.Endpoints[0].Hostname = new("db-0")
	source.Endpoints[1].Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
	a.ExportService(t, service, source)
	serviceImport, derived := b.Imported(t, k)
	if serviceImport.Spec.Type != mcsv1beta1.Headless || len(serviceImport.Spec.IPs) > 0 || derived.Spec.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("type %s, ips %v, derived clusterIP %s", serviceImport.Spec.Type, serviceImport.Spec.IPs, derived.Spec.ClusterIP)
	}
	lab.Equal(t, "families", []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, serviceImport.Spec.IPFamilies)
	b.Endpoints(t, k, "a 10.1.0.1::13432", "a 10.1.0.2::13432")
	mirrored, err := b.Mirrored(t.Context(), k)
	lab.Must(t, err)
	want := slices.Clone(source.Endpoints)
	for i := range want {
		want[i].NodeName = nil // a remote node may bear a local node's name
	}
	slices.SortFunc(mirrored[0].Endpoints, func(x, y discoveryv1.Endpoint) int { return slices.Compare(x.Addresses, y.Addresses) })
	lab.Equal(t, "endpoints in b", want, mirrored[0].Endpoints)
	if _, headless := mirrored[0].Labels["service.kubernetes.io/headless"]; !headless {
		t.Errorf("the slice is not marked as headless: %v", mirrored[0].Labels)
	}
	a.Endpoints(t, k, "a 10.1.0.1::13432", "a 10.1.0.2::13432")
	own, err := a.Mirrored(t.Context(), k)
	lab.Must(t, err)
	if len(own) != 1 || own[0].Endpoints[0].NodeName == nil || *own[0].Endpoints[0].NodeName != "node-1" {
		t.Errorf("slices of the exporter itself: %+v, want one with node names", own)
	}
}

// spec: C3, C4, C5, R1, R2, R3, R6
func testConflict(t *testing.T, a, b *member) {
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	inA, inB := world.Service(k, world.Port("http", 80)), world.Service(k, world.Port("http", 8080), world.Port("admin", 9090))
	inB.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	a.ExportService(t, inA, world.Slice(inA, "v4", "10.1.0.1"))
	a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
	b.Endpoints(t, k, "a 10.1.0.1:http:8080")
	b.ExportService(t, inB, world.Slice(inB, "v4", "10.2.0.1"))
	for _, m := range []*member{a, b} {
		m.Endpoints(t, k, "a 10.1.0.1:http:8080", "b 10.2.0.1:admin:17090")
		c := m.Condition(t, k, conflict, metav1.ConditionTrue, "PortConflict,SessionAffinityConflict,SessionAffinityConfigConflict")
		want := `Conflicting ports. Using "http:80/TCP, admin:9090/TCP" from all service exports, that in "a" first. 1/2 clusters disagree. ` +
			`Conflicting session affinity. Using "None" from oldest service export in "a". 1/2 clusters disagree. ` +
			`Conflicting session affinity config. Using "no timeout" from oldest service export in "a". 1/2 clusters disagree.`
		if c.Message != want {
			t.Errorf("message on the export in %s:\n%s\nwant:\n%s", m.ID, c.Message, want)
		}
		m.Event(t, k, c.Reason, "")
	}
	lab.Must(t, b.Delete(t.Context(), world.Export(k)))
	a.Condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
	a.Endpoints(t, k, "a 10.1.0.1:http:8080")
}
