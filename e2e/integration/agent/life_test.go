// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

const (
	ready    = mcsv1beta1.ServiceExportConditionReady
	valid    = mcsv1beta1.ServiceExportConditionValid
	conflict = mcsv1beta1.ServiceExportConditionConflict
)

// TestLife follows services through their ordinary life, between two members and their hub.
//
//nolint:tparallel // while they waited for their turn, other tests would start clusters
func TestLife(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	w.members["a"].start(t)
	w.members["b"].start(t)
	for name, story := range map[string]func(*testing.T, *member, *member){
		"ExportWithdraw":         testExportWithdraw,
		"DualStack":              testDualStack,
		"HeadlessService":        testHeadless,
		"ChangesPropagate":       testChanges,
		"ManyEndpoints":          testManyEndpoints,
		"FastChanges":            testFastChanges,
		"MetadataCrosses":        testMetadata,
		"SecondExporter":         testSecondExporter,
		"ConflictOnBoth":         testConflict,
		"SamePortOtherName":      testSamePortOtherName,
		"NoServiceYet":           testNoService,
		"ExternalName":           testExternalName,
		"DerivedNotExportable":   testDerivedNotExportable,
		"InvalidLocalExport":     testInvalidLocalExport,
		"UnexportedStaysPrivate": testUnexported,
		"SourceServiceUntouched": testUntouched,
		"DriftIsReverted":        testDrift,
		"ForeignImportInTheWay":  testForeignImport,
		"TakenOver":              testTakenOver,
		"NamesCollide":           testCollision,
		"NamesCollideAtOnce":     testCollisionAtOnce,
		"BothNamesTaken":         testBothNamesTaken,
		"AddressLeftOut":         testAddressLeftOut,
	} {
		t.Run(name, func(t *testing.T) { story(t, w.members["a"], w.members["b"]) })
	}
}

// spec: E1, E3, I1, I2, I3, D1, C1, C2, C3
func testExportWithdraw(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	a.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1", "10.1.0.2"))
	for _, m := range []*member{a, b} {
		serviceImport, derived := m.imported(t, k)
		m.endpoints(t, k, "a 10.1.0.1:http:8080", "a 10.1.0.2:http:8080")
		if diff := cmp.Diff([]mcsv1beta1.ClusterStatus{{Cluster: "a"}}, serviceImport.Status.Clusters); diff != "" {
			t.Errorf("exporters (-want +got):\n%s", diff)
		}
		if serviceImport.Status.EndpointSliceObjects != mcsv1beta1.EndpointSliceObjectsPresent {
			t.Errorf("endpointSliceObjects is %q", serviceImport.Status.EndpointSliceObjects)
		}
		if derived.Spec.Type != corev1.ServiceTypeClusterIP || derived.Spec.Selector != nil {
			t.Errorf("the derived Service has type %s and selector %v", derived.Spec.Type, derived.Spec.Selector)
		}
	}
	a.condition(t, k, valid, metav1.ConditionTrue, "Valid")
	a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
	a.condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")

	lab.Must(t, a.Delete(t.Context(), slice(service, "v4", discoveryv1.AddressTypeIPv4)))
	for _, m := range []*member{a, b} { // without an endpoint the import lives on
		m.endpoints(t, k)
		m.imported(t, k)
	}
	lab.Must(t, a.Delete(t.Context(), export(k)))
	a.gone(t, k)
	b.gone(t, k)
}

// testFastChanges: what changes faster than others follow arrives all the same, the last of it too.
//
// spec: D7
func testFastChanges(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	changing := slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1")
	a.exportService(t, service, changing)
	b.endpoints(t, k, "a 10.1.0.1:http:8080")
	for i := range 300 {
		changing.Endpoints[0].Addresses[0] = fmt.Sprintf("10.1.%d.%d", i/100, 1+i%100)
		lab.Must(t, a.Update(t.Context(), changing))
	}
	b.endpoints(t, k, "a 10.1.2.100:http:8080")
}

// spec: I4, I5, I8, D2, D3, D4, D5, R2
func testDualStack(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web-service"}
	unnamed := port("", 80)
	unnamed.AppProtocol = new("http")
	service := clusterIPService(k, unnamed)
	a.exportService(t, service,
		slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"),
		slice(service, "v4b", discoveryv1.AddressTypeIPv4, "10.1.0.2"),
		slice(service, "v6", discoveryv1.AddressTypeIPv6, "fd00:1::1"))
	serviceImport, derived := b.imported(t, k)
	if derived.Name != "derived-435094621" {
		t.Errorf("the derived Service is called %s", derived.Name)
	}
	wantPorts := []mcsv1beta1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80, AppProtocol: new("http")}}
	if diff := cmp.Diff(wantPorts, serviceImport.Spec.Ports); diff != "" {
		t.Errorf("ports of the import (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, serviceImport.Spec.IPFamilies); diff != "" {
		t.Errorf("families (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(derived.Spec.ClusterIPs, serviceImport.Spec.IPs); diff != "" || len(serviceImport.Spec.IPs) != 2 {
		t.Errorf("ips of the import and of the derived Service (-want +got):\n%s", diff)
	}
	wantLabels := map[string]string{
		"multicluster.kubernetes.io/service-name":     "web-service",
		"multicluster.kubernetes.io/service-imported": "true",
		"app.kubernetes.io/managed-by":                "tombolo-mcs.io",
	}
	if diff := cmp.Diff(wantLabels, derived.Labels); diff != "" {
		t.Errorf("labels of the derived Service (-want +got):\n%s", diff)
	}
	b.endpoints(t, k, "a 10.1.0.1:unnamed:8080", "a 10.1.0.2:unnamed:8080", "a fd00:1::1:unnamed:8080")
	mirrored, err := b.mirrored(t.Context(), k)
	lab.Must(t, err)
	for _, s := range mirrored {
		want := map[string]string{
			"kubernetes.io/service-name":                "derived-435094621",
			"multicluster.kubernetes.io/service-name":   "web-service",
			"multicluster.kubernetes.io/source-cluster": "a",
			"endpointslice.kubernetes.io/managed-by":    "tombolo-mcs.io",
		}
		if diff := cmp.Diff(want, s.Labels); diff != "" {
			t.Errorf("labels of slice %s (-want +got):\n%s", s.Name, diff)
		}
	}
}

// spec: E4, I5, I6, D1, D4, D6, R2
func testHeadless(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "db"}
	service := headlessService(k, port("", 5432))
	source := slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1", "10.1.0.2")
	source.Endpoints[0].Hostname = new("db-0")
	source.Endpoints[1].Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
	a.exportService(t, service, source)
	serviceImport, derived := b.imported(t, k)
	if serviceImport.Spec.Type != mcsv1beta1.Headless || len(serviceImport.Spec.IPs) > 0 || derived.Spec.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("type %s, ips %v, derived clusterIP %s", serviceImport.Spec.Type, serviceImport.Spec.IPs, derived.Spec.ClusterIP)
	}
	if diff := cmp.Diff([]corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, serviceImport.Spec.IPFamilies); diff != "" {
		t.Errorf("families (-want +got):\n%s", diff)
	}
	b.endpoints(t, k, "a 10.1.0.1::13432", "a 10.1.0.2::13432")
	mirrored, err := b.mirrored(t.Context(), k)
	lab.Must(t, err)
	want := slices.Clone(source.Endpoints)
	for i := range want {
		want[i].NodeName = nil // a remote node may bear a local node's name
	}
	slices.SortFunc(mirrored[0].Endpoints, func(x, y discoveryv1.Endpoint) int { return slices.Compare(x.Addresses, y.Addresses) })
	if diff := cmp.Diff(want, mirrored[0].Endpoints); diff != "" {
		t.Errorf("endpoints in b (-want +got):\n%s", diff)
	}
	if _, headless := mirrored[0].Labels["service.kubernetes.io/headless"]; !headless {
		t.Errorf("the slice is not marked as headless: %v", mirrored[0].Labels)
	}
	a.endpoints(t, k, "a 10.1.0.1::13432", "a 10.1.0.2::13432")
	own, err := a.mirrored(t.Context(), k)
	lab.Must(t, err)
	if len(own) != 1 || own[0].Endpoints[0].NodeName == nil || *own[0].Endpoints[0].NodeName != "node-1" {
		t.Errorf("slices of the exporter itself: %+v, want one with node names", own)
	}
}

// spec: D7, I5
func testChanges(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	source := slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1", "10.1.0.2")
	a.exportService(t, service, source)
	before, _ := b.imported(t, k)
	b.endpoints(t, k, "a 10.1.0.1:http:8080", "a 10.1.0.2:http:8080")

	source.Endpoints = source.Endpoints[:1]
	lab.Must(t, a.Update(t.Context(), source))
	b.endpoints(t, k, "a 10.1.0.1:http:8080")

	source.Endpoints[0].Conditions.Ready, source.Endpoints[0].Zone, source.Endpoints[0].Hostname = new(false), new("zone-2"), new("pod-1")
	lab.Must(t, a.Update(t.Context(), source))
	eventually(t, func(ctx context.Context) error {
		mirrored, err := b.mirrored(ctx, k)
		if err != nil {
			return err
		}
		if e := mirrored[0].Endpoints[0]; *e.Conditions.Ready || *e.Zone != "zone-2" || e.Hostname == nil || *e.Hostname != "pod-1" {
			return fmt.Errorf("the endpoint in b is still %+v", e)
		}
		return nil
	})

	service.Spec.Ports = []corev1.ServicePort{port("web", 81), port("admin", 9090)}
	lab.Must(t, a.Update(t.Context(), service))
	source.Ports = slice(service, "v4", discoveryv1.AddressTypeIPv4).Ports
	lab.Must(t, a.Update(t.Context(), source))
	b.endpoints(t, k, "a 10.1.0.1:web:8081", "a 10.1.0.1:admin:17090")
	eventually(t, func(ctx context.Context) error {
		after, derived := b.imported(t, k)
		if len(after.Spec.Ports) != 2 || after.Spec.Ports[0].Name != "web" || after.Spec.Ports[0].Port != 81 || len(derived.Spec.Ports) != 2 {
			return fmt.Errorf("ports in b are still %+v and %+v", after.Spec.Ports, derived.Spec.Ports)
		}
		if diff := cmp.Diff(before.Spec.IPs, after.Spec.IPs); diff != "" {
			t.Errorf("the addresses changed (-want +got):\n%s", diff)
		}
		return nil
	})

	a.condition(t, k, ready, metav1.ConditionTrue, "Exported") // the last that is written there
	exported := export(k)
	lab.Must(t, a.Get(t.Context(), k, exported))
	exported.Spec.ExportedLabels = map[string]string{"team": "blue"}
	lab.Must(t, a.Update(t.Context(), exported))
	eventually(t, func(ctx context.Context) error {
		if after, derived := b.imported(t, k); after.Labels["team"] != "blue" || derived.Labels["team"] != "blue" {
			return fmt.Errorf("labels in b are %v and %v", after.Labels, derived.Labels)
		}
		return nil
	})
}

// spec: D5
func testManyEndpoints(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "big"}
	service := clusterIPService(k, port("http", 80))
	var sources []*discoveryv1.EndpointSlice
	var want []string
	for i := range 3 {
		var addresses []string
		for j := range 100 {
			addresses = append(addresses, fmt.Sprintf("10.1.%d.%d", i, j+1))
			want = append(want, fmt.Sprintf("a 10.1.%d.%d:http:8080", i, j+1))
		}
		sources = append(sources, slice(service, strconv.Itoa(i), discoveryv1.AddressTypeIPv4, addresses...))
	}
	a.exportService(t, service, sources...)
	b.endpoints(t, k, want...)
}

// spec: E7, D3, I8
func testMetadata(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	service.Labels = map[string]string{"private": "service"}
	service.Annotations = map[string]string{"private": "service"}
	lab.Must(t, a.Create(t.Context(), service))
	exported := export(k)
	exported.Labels = map[string]string{"private": "export"}
	exported.Annotations = map[string]string{"private": "export"}
	exported.Spec.ExportedLabels = map[string]string{"team": "blue", "service.kubernetes.io/headless": "", "kuma.io/mesh": "x"}
	exported.Spec.ExportedAnnotations = map[string]string{"docs": "https://example.com", "service.beta.kubernetes.io/aws-load-balancer-internal": "true", "consul.hashicorp.com/x": "x"}
	lab.Must(t, a.Create(t.Context(), exported))
	serviceImport, derived := b.imported(t, k)
	wantLabels := map[string]string{"team": "blue", "app.kubernetes.io/managed-by": "tombolo-mcs.io"}
	if diff := cmp.Diff(wantLabels, serviceImport.Labels); diff != "" {
		t.Errorf("labels of the import (-want +got):\n%s", diff)
	}
	wantAnnotations := map[string]string{"docs": "https://example.com", "multicluster.kubernetes.io/derived-service": derived.Name}
	if diff := cmp.Diff(wantAnnotations, serviceImport.Annotations); diff != "" {
		t.Errorf("annotations of the import (-want +got):\n%s", diff)
	}
	wantDerived := maps.Clone(wantLabels)
	wantDerived["multicluster.kubernetes.io/service-name"] = "web"
	wantDerived["multicluster.kubernetes.io/service-imported"] = "true"
	if diff := cmp.Diff(wantDerived, derived.Labels); diff != "" {
		t.Errorf("labels of the derived Service (-want +got):\n%s", diff)
	}
	if len(derived.Annotations) > 0 {
		t.Errorf("annotations of the derived Service: %v", derived.Annotations)
	}
}

// spec: E2, E3, R1, R6, I2, I3
func testSecondExporter(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	inA, inB := clusterIPService(k, port("http", 80)), clusterIPService(k, port("http", 80))
	a.exportService(t, inA, slice(inA, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	before, _ := b.imported(t, k)
	b.exportService(t, inB, slice(inB, "v4", discoveryv1.AddressTypeIPv4, "10.2.0.1"))
	for _, m := range []*member{a, b} {
		m.endpoints(t, k, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
		eventually(t, func(ctx context.Context) error {
			after, _ := m.imported(t, k)
			if !cmp.Equal(after.Status.Clusters, []mcsv1beta1.ClusterStatus{{Cluster: "a"}, {Cluster: "b"}}) {
				return fmt.Errorf("exporters in %s are %v", m.id, after.Status.Clusters)
			}
			return nil
		})
	}
	a.condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
	b.condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
	lab.Must(t, a.Delete(t.Context(), export(k)))
	for _, m := range []*member{a, b} {
		m.endpoints(t, k, "b 10.2.0.1:http:8080")
	}
	after, _ := b.imported(t, k)
	if diff := cmp.Diff(before.Spec.IPs, after.Spec.IPs); diff != "" {
		t.Errorf("the addresses changed (-want +got):\n%s", diff)
	}
	lab.Must(t, b.Delete(t.Context(), export(k)))
	a.gone(t, k)
	b.gone(t, k)
}

// spec: C3, C4, C5, R1, R2, R3, R6
func testConflict(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	inA, inB := clusterIPService(k, port("http", 80)), clusterIPService(k, port("http", 8080), port("admin", 9090))
	inB.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	a.exportService(t, inA, slice(inA, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
	b.endpoints(t, k, "a 10.1.0.1:http:8080")
	b.exportService(t, inB, slice(inB, "v4", discoveryv1.AddressTypeIPv4, "10.2.0.1"))
	for _, m := range []*member{a, b} {
		m.endpoints(t, k, "a 10.1.0.1:http:8080", "b 10.2.0.1:admin:17090")
		c := m.condition(t, k, conflict, metav1.ConditionTrue, "PortConflict,SessionAffinityConflict,SessionAffinityConfigConflict")
		want := `Conflicting ports. Using "http:80/TCP, admin:9090/TCP" from all service exports, that in "a" first. 1/2 clusters disagree. ` +
			`Conflicting session affinity. Using "None" from oldest service export in "a". 1/2 clusters disagree. ` +
			`Conflicting session affinity config. Using "no timeout" from oldest service export in "a". 1/2 clusters disagree.`
		if c.Message != want {
			t.Errorf("message on the export in %s:\n%s\nwant:\n%s", m.id, c.Message, want)
		}
		eventually(t, func(ctx context.Context) error { return m.hasEvent(ctx, k, c.Reason) })
	}
	lab.Must(t, b.Delete(t.Context(), export(k)))
	a.condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
	a.endpoints(t, k, "a 10.1.0.1:http:8080")
}

// spec: R2
func testSamePortOtherName(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	inA, inB := clusterIPService(k, port("http", 80)), clusterIPService(k, port("web", 80))
	a.exportService(t, inA, slice(inA, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
	b.imported(t, k)
	b.exportService(t, inB, slice(inB, "v4", discoveryv1.AddressTypeIPv4, "10.2.0.1"))
	for _, m := range []*member{a, b} {
		m.endpoints(t, k, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
		m.condition(t, k, conflict, metav1.ConditionTrue, "PortConflict")
	}
}

// spec: E6, C1, C2
func testNoService(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "late"}
	lab.Must(t, a.Create(t.Context(), export(k)))
	c := a.condition(t, k, valid, metav1.ConditionFalse, "NoService")
	want := fmt.Sprintf("There is no Service late in namespace %s. Create it, or delete this ServiceExport.", k.Namespace)
	if c.Message != want {
		t.Errorf("message %q, want %q", c.Message, want)
	}
	a.condition(t, k, ready, metav1.ConditionFalse, "Pending")
	lab.Must(t, a.Create(t.Context(), clusterIPService(k, port("http", 80))))
	a.condition(t, k, valid, metav1.ConditionTrue, "Valid")
	b.imported(t, k)
	lab.Must(t, a.Delete(t.Context(), clusterIPService(k)))
	a.condition(t, k, valid, metav1.ConditionFalse, "NoService")
	b.gone(t, k)
	lab.Must(t, a.Create(t.Context(), headlessService(k)))
	if i, _ := b.imported(t, k); i.Spec.Type != mcsv1beta1.Headless || i.Spec.Ports == nil {
		t.Errorf("import of a headless Service without ports: %+v", i.Spec)
	}
}

// spec: E5, C1
func testExternalName(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "elsewhere"}
	service := clusterIPService(k)
	service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}
	a.exportService(t, service)
	a.condition(t, k, valid, metav1.ConditionFalse, "InvalidServiceType")
	witness := key{Namespace: k.Namespace, Name: "witness"} // what came later is there, so the other will not come
	a.exportService(t, clusterIPService(witness, port("http", 80)))
	b.imported(t, witness)
	b.gone(t, k)
}

// spec: E9
func testDerivedNotExportable(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	a.exportService(t, clusterIPService(k, port("http", 80)))
	_, derived := b.imported(t, k)
	lab.Must(t, b.Create(t.Context(), export(client.ObjectKeyFromObject(derived))))
	c := b.condition(t, client.ObjectKeyFromObject(derived), valid, metav1.ConditionFalse, "InvalidServiceType")
	want := fmt.Sprintf("Service %s is itself derived from an import and cannot be exported again. Export the original Service, named web, where it runs.", derived.Name)
	if c.Message != want {
		t.Errorf("message %q, want %q", c.Message, want)
	}
}

// spec: C7, E1
func testInvalidLocalExport(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	lab.Must(t, b.Create(t.Context(), export(k)))
	b.condition(t, k, valid, metav1.ConditionFalse, "NoService")
	service := clusterIPService(k, port("http", 80))
	a.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	b.imported(t, k)
	b.endpoints(t, k, "a 10.1.0.1:http:8080")
}

// spec: E1
func testUnexported(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	inA, inB := clusterIPService(k, port("http", 80)), clusterIPService(k, port("http", 80))
	lab.Must(t, b.Create(t.Context(), inB))
	lab.Must(t, b.Create(t.Context(), slice(inB, "v4", discoveryv1.AddressTypeIPv4, "10.2.0.1")))
	a.exportService(t, inA, slice(inA, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	for _, m := range []*member{a, b} {
		m.endpoints(t, k, "a 10.1.0.1:http:8080")
	}
}

// spec: E4
func testUntouched(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	service.Spec.Type = corev1.ServiceTypeNodePort
	a.exportService(t, service)
	b.imported(t, k)
	a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
	after := &corev1.Service{}
	lab.Must(t, a.Get(t.Context(), k, after))
	if diff := cmp.Diff(service, after); diff != "" {
		t.Errorf("the Service changed (-before +after):\n%s", diff)
	}
}
