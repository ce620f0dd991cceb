// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// TestCorners follows services that are not quite ordinary, between two dual-stack members and their hub.
//
//nolint:tparallel // while they waited for their turn, other tests would start clusters
func TestCorners(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	w.members["a"].start(t)
	w.members["b"].start(t)
	for name, story := range map[string]func(*testing.T, *member, *member){
		"LargeSlices":         testLargeSlices,
		"SlicesWithoutPorts":  testSlicesWithoutPorts,
		"HeadlessNoPorts":     testHeadlessNoPorts,
		"EndpointsVerbatim":   testEndpointsVerbatim,
		"NodeNames":           testNodeNames,
		"CustomController":    testCustomController,
		"Protocols":           testProtocols,
		"PortChanges":         testPortChanges,
		"Hints":               testHints,
		"HintsOfTwoExporters": testHintsOfTwoExporters,
		"ExternalNameAndBack": testExternalNameAndBack,
		"TypeOfTheOldest":     testTypeOfTheOldest,
		"NodePortsStay":       testNodePortsStay,
		"FamilyOrderStays":    testFamilyOrderStays,
		"HeadlessFamilies":    testHeadlessFamilies,
	} {
		t.Run(name, func(t *testing.T) { story(t, w.members["a"], w.members["b"]) })
	}
}

// slices waits until these slices are mirrored for an import, whatever they are called.
func (m *member) slices(t *testing.T, k key, want ...discoveryv1.EndpointSlice) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		mirrored, err := m.mirrored(ctx, k)
		if err != nil {
			return err
		}
		for i := range mirrored {
			meta := mirrored[i].ObjectMeta
			mirrored[i].ObjectMeta = metav1.ObjectMeta{Labels: meta.Labels, Annotations: meta.Annotations, OwnerReferences: meta.OwnerReferences, Finalizers: meta.Finalizers}
		}
		anyOrder := cmpopts.SortSlices(func(a, b discoveryv1.EndpointSlice) bool { return fmt.Sprint(a.Endpoints) < fmt.Sprint(b.Endpoints) })
		if diff := cmp.Diff(want, mirrored, anyOrder, cmpopts.EquateEmpty()); diff != "" {
			return fmt.Errorf("%s: slices of %s (-want +got):\n%s", m.id, k, diff)
		}
		return nil
	})
}

// mirror returns a mirrored slice of an import as it should be, less its name.
func mirror(k key, derived, source string, family discoveryv1.AddressType, ports []discoveryv1.EndpointPort, endpoints ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
	return discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			"kubernetes.io/service-name":                derived,
			"multicluster.kubernetes.io/service-name":   k.Name,
			"multicluster.kubernetes.io/source-cluster": source,
			"endpointslice.kubernetes.io/managed-by":    "tombolo-mcs.io",
		}},
		AddressType: family, Ports: ports, Endpoints: endpoints,
	}
}

// headless marks a mirrored slice as one of a headless service.
func headless(s discoveryv1.EndpointSlice) discoveryv1.EndpointSlice {
	s.Labels["service.kubernetes.io/headless"] = ""
	return s
}

func endpointPort(name string, protocol corev1.Protocol, number int32) discoveryv1.EndpointPort {
	return discoveryv1.EndpointPort{Name: new(name), Protocol: new(protocol), Port: new(number)}
}

// spec: D5
func testLargeSlices(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "big"}
	service := clusterIPService(k, port("http", 80))
	var want, four []string
	for i := range 1000 { // the most that a slice can hold
		four = append(four, fmt.Sprintf("10.1.%d.%d", i/250, i%250+1))
		want = append(want, "a "+four[i]+":http:8080")
	}
	var sixes [2][]string
	for i := range 240 {
		address := fmt.Sprintf("fd00:1::%x", i+1)
		sixes[i/120] = append(sixes[i/120], address)
		want = append(want, "a "+address+":http:8080")
	}
	a.exportService(t, service,
		slice(service, "v4", discoveryv1.AddressTypeIPv4, four...), slice(service, "v4b", discoveryv1.AddressTypeIPv4, "10.1.9.1"),
		slice(service, "v6", discoveryv1.AddressTypeIPv6, sixes[0]...), slice(service, "v6b", discoveryv1.AddressTypeIPv6, sixes[1]...))
	b.endpoints(t, k, append(want, "a 10.1.9.1:http:8080")...)
	lab.Must(t, a.Delete(t.Context(), slice(service, "v6", discoveryv1.AddressTypeIPv6)))
	lab.Must(t, a.Delete(t.Context(), slice(service, "v4b", discoveryv1.AddressTypeIPv4)))
	b.endpoints(t, k, append(want[:1000:1000], want[1120:]...)...)
}

// A slice without ports takes no traffic of a service that has ports.
//
// spec: D6
func testSlicesWithoutPorts(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	portless := slice(service, "portless", discoveryv1.AddressTypeIPv4, "10.1.0.1")
	portless.Ports = nil
	a.exportService(t, service, portless, slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.2"))
	_, derived := b.imported(t, k)
	want := slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.2").Endpoints
	want[0].NodeName = nil
	b.slices(t, k, mirror(k, derived.Name, "a", discoveryv1.AddressTypeIPv4, []discoveryv1.EndpointPort{endpointPort("http", "TCP", 8080)}, want...))
}

// spec: D4, D6
func testHeadlessNoPorts(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "pets"}
	service := headlessService(k)
	v4, v6 := slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"), slice(service, "v6", discoveryv1.AddressTypeIPv6, "fd00:1::1")
	v4.Endpoints[0].NodeName, v6.Endpoints[0].NodeName = nil, nil
	a.exportService(t, service, v4, v6)
	serviceImport, derived := b.imported(t, k)
	if serviceImport.Spec.Ports == nil || len(serviceImport.Spec.Ports)+len(derived.Spec.Ports) > 0 {
		t.Errorf("ports %v and %v", serviceImport.Spec.Ports, derived.Spec.Ports)
	}
	for _, m := range []*member{a, b} {
		m.slices(t, k,
			headless(mirror(k, derived.Name, "a", discoveryv1.AddressTypeIPv4, nil, v4.Endpoints...)),
			headless(mirror(k, derived.Name, "a", discoveryv1.AddressTypeIPv6, nil, v6.Endpoints...)))
	}
}

// What endpoints say of themselves stays as it is, and what means nothing in another cluster is not copied. FQDN slices
// are not mirrored, and the export says so.
//
// spec: D4, D5, D6
func testEndpointsVerbatim(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	source := slice(service, "v4", discoveryv1.AddressTypeIPv4)
	source.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "2026-01-01T00:00:00Z", "example.com/note": "private"}
	source.Labels["example.com/private"] = "yes"
	source.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "web", UID: "0"}}
	source.Ports[0].AppProtocol = new("kubernetes.io/h2c")
	pod := &corev1.ObjectReference{Kind: "Pod", Namespace: k.Namespace, Name: "web-0", UID: "1"}
	source.Endpoints = []discoveryv1.Endpoint{
		{Addresses: []string{"10.1.0.1"}, TargetRef: pod, Hints: &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "elsewhere"}}}},
		{Addresses: []string{"10.1.0.2", "10.1.0.3"}, Hostname: new("two"), Conditions: discoveryv1.EndpointConditions{Serving: new(true)}},
		{Addresses: []string{"10.1.0.4"}, Zone: new("zone-1"), Conditions: discoveryv1.EndpointConditions{Ready: new(true), Terminating: new(true)}},
		{Addresses: []string{"10.1.0.5"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false), Terminating: new(false)}},
	}
	names := slice(service, "fqdn", discoveryv1.AddressTypeFQDN, "example.com")
	a.exportService(t, service, source, names)
	_, derived := b.imported(t, k)
	eventually(t, func(context.Context) error {
		const leftOut = "Left out: EndpointSlices of host names (address type FQDN): web-fqdn."
		ready := a.condition(t, k, mcsv1beta1.ServiceExportConditionReady, metav1.ConditionTrue, string(mcsv1beta1.ServiceExportReasonExported))
		if !strings.Contains(ready.Message, leftOut) {
			return fmt.Errorf("the export says %q", ready.Message)
		}
		return nil
	})
	want := source.DeepCopy().Endpoints
	want[0].TargetRef, want[0].Hints = nil, nil
	ports := []discoveryv1.EndpointPort{endpointPort("http", "TCP", 8080)}
	ports[0].AppProtocol = new("kubernetes.io/h2c")
	for _, m := range []*member{a, b} { // a takes them from its own API server, b from the hub
		m.slices(t, k, mirror(k, derived.Name, "a", discoveryv1.AddressTypeIPv4, ports, want...))
	}
}

// Nodes of several clusters may bear one name: a mirrored slice names only nodes of the cluster in which it lies.
//
// spec: D6
func testNodeNames(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	own := map[string][]discoveryv1.Endpoint{}
	ports := []discoveryv1.EndpointPort{endpointPort("http", "TCP", 8080)}
	for id, address := range map[string]string{"a": "10.1.0.1", "b": "10.2.0.1"} {
		service := clusterIPService(k, port("http", 80))
		source := slice(service, "v4", discoveryv1.AddressTypeIPv4, address) // on node-1 of either
		own[id] = source.Endpoints
		map[string]*member{"a": a, "b": b}[id].exportService(t, service, source)
	}
	remote := func(id string) discoveryv1.Endpoint {
		e := *own[id][0].DeepCopy()
		e.NodeName = nil
		return e
	}
	_, derived := b.imported(t, k)
	name := derived.Name
	a.slices(t, k,
		mirror(k, name, "a", discoveryv1.AddressTypeIPv4, ports, own["a"]...), mirror(k, name, "b", discoveryv1.AddressTypeIPv4, ports, remote("b")))
	b.slices(t, k,
		mirror(k, name, "a", discoveryv1.AddressTypeIPv4, ports, remote("a")), mirror(k, name, "b", discoveryv1.AddressTypeIPv4, ports, own["b"]...))
}

// A Service without a selector has the slices that somebody's own controller writes.
//
// spec: D4, D5, D7
func testCustomController(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "legacy"}
	service := clusterIPService(k, port("http", 80))
	theirs := slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1")
	theirs.Name = "any-name.of.theirs"
	theirs.Labels[discoveryv1.LabelManagedBy] = "controller.example.com"
	unmanaged := slice(service, "by-hand", discoveryv1.AddressTypeIPv4, "10.1.0.2")
	delete(unmanaged.Labels, discoveryv1.LabelManagedBy)
	another := slice(clusterIPService(key{Namespace: k.Namespace, Name: "another"}, port("http", 80)), "v4", discoveryv1.AddressTypeIPv4, "10.1.0.3")
	a.exportService(t, service, theirs, unmanaged, another)
	b.endpoints(t, k, "a 10.1.0.1:http:8080", "a 10.1.0.2:http:8080")
	another.Labels[discoveryv1.LabelServiceName] = k.Name
	lab.Must(t, a.Update(t.Context(), another))
	b.endpoints(t, k, "a 10.1.0.1:http:8080", "a 10.1.0.2:http:8080", "a 10.1.0.3:http:8080")
	delete(theirs.Labels, discoveryv1.LabelServiceName)
	lab.Must(t, a.Update(t.Context(), theirs))
	b.endpoints(t, k, "a 10.1.0.2:http:8080", "a 10.1.0.3:http:8080")
}

// spec: R1, R2, D6
func testProtocols(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "dns"}
	numbers := map[corev1.Protocol]int32{corev1.ProtocolTCP: 1053, corev1.ProtocolUDP: 2053, corev1.ProtocolSCTP: 3053}
	var servicePorts []corev1.ServicePort
	for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolSCTP, corev1.ProtocolTCP} {
		servicePorts = append(servicePorts, corev1.ServicePort{
			Name: "over-" + map[corev1.Protocol]string{"TCP": "tcp", "UDP": "udp", "SCTP": "sctp"}[protocol], Protocol: protocol, Port: 53,
			TargetPort: intstr.FromInt32(numbers[protocol]),
		})
	}
	service := clusterIPService(k, servicePorts...)
	source := slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1")
	source.Endpoints[0].NodeName = nil
	a.exportService(t, service, source)
	serviceImport, derived := b.imported(t, k)
	var inImport []mcsv1beta1.ServicePort
	for i, p := range servicePorts {
		inImport = append(inImport, mcsv1beta1.ServicePort{Name: p.Name, Protocol: p.Protocol, Port: 53})
		servicePorts[i].TargetPort = intstr.FromInt32(53) // of the derived Service: its slices say where traffic goes
	}
	if diff := cmp.Diff(inImport, serviceImport.Spec.Ports); diff != "" {
		t.Errorf("ports of the import (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(servicePorts, derived.Spec.Ports); diff != "" {
		t.Errorf("ports of the derived Service (-want +got):\n%s", diff)
	}
	b.slices(t, k, mirror(k, derived.Name, "a", discoveryv1.AddressTypeIPv4, []discoveryv1.EndpointPort{
		endpointPort("over-udp", "UDP", 2053), endpointPort("over-sctp", "SCTP", 3053), endpointPort("over-tcp", "TCP", 1053),
	}, source.Endpoints...))
}
