// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// near is a cluster with the pods, Services and slices to which a slice of a tenant could lead.
func near(t *testing.T, more ...client.Object) neighbours {
	t.Helper()
	pod := func(namespace, name string, phase corev1.PodPhase, hostNetwork bool, address string, ports ...int32) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{labelName: name}},
			Spec:       corev1.PodSpec{HostNetwork: hostNetwork, InitContainers: []corev1.Container{{}}, Containers: []corev1.Container{{}}},
			Status:     corev1.PodStatus{Phase: phase, PodIPs: []corev1.PodIP{{IP: address}}},
		}
		for i, number := range ports {
			containers := [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers}[i%2]
			containers[0].Ports = append(containers[0].Ports, corev1.ContainerPort{ContainerPort: number, Protocol: corev1.ProtocolTCP})
		}
		compacted, err := compactPod(p)
		check.Must(t, err)
		return compacted.(*corev1.Pod)
	}
	slice := func(namespace, service, address string, port int32) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			Ports:      []discoveryv1.EndpointPort{{Port: &port}}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
		}
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{
		ClusterIPs: []string{"10.96.0.10", "fd00:96::10"}, ExternalIPs: []string{"10.1.0.50", "fd00:1::50"}, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080}},
	}}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.1.0.51"}, {Hostname: "lb.example.com"}}
	const running, namespace = corev1.PodRunning, "tombolo-system"
	objects := append([]client.Object{
		pod("shop", "web", running, false, "10.1.0.1"),
		pod("shop", "host", running, true, "192.0.2.1", 8080, 9090),
		pod("other", "host", running, true, "192.0.2.2", 8080),
		pod("shop", "succeeded", corev1.PodSucceeded, true, "192.0.2.3", 8080),
		pod("shop", "failed", corev1.PodFailed, true, "192.0.2.3", 8080),
		pod("kube-system", "kube-proxy", running, true, "192.0.2.3", 10256),
		pod(namespace, clusterset.GatewayService, running, false, "10.1.0.71"),
		pod("shop", clusterset.GatewayService, running, false, "10.1.0.2"), // a tenant may use the label
		slice(namespace, clusterset.GatewayService, "10.1.0.72", 8443),
		slice(metav1.NamespaceDefault, "kubernetes", "10.1.0.60", 6443),
		service,
	}, more...)
	scheme := runtime.NewScheme()
	check.Must(t, errors.Join(clientgoscheme.AddToScheme(scheme), mcsv1beta1.Install(scheme)))
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, caches.IndexAddress, caches.PodAddresses).
		WithIndex(&corev1.Service{}, indexServiceAddress, serviceAddresses).
		WithIndex(&discoveryv1.EndpointSlice{}, caches.IndexSource, caches.SourceIndex).Build()
	return neighbours{cache: c, namespace: namespace, podIPs: []string{"10.1.0.70", "fd00:1::70"}}
}

// ownRanges are those of the cluster that near returns.
func ownRanges(t *testing.T) clusterset.OwnRanges {
	t.Helper()
	pods, err := clusterset.ParsePrefixes([]string{"10.1.0.0/16", "fd00:1::/64"})
	check.Must(t, err)
	services, err := clusterset.ParsePrefixes([]string{"10.96.0.0/16", "fd00:96::/112"})
	check.Must(t, err)
	return clusterset.OwnRanges{Pods: pods, Services: services}
}

// What a gateway reads of its cluster decides to which addresses it connects, with and without the ranges of the cluster.
//
// spec: W5
func TestGatewayBackendRules(t *testing.T) {
	t.Parallel()
	n := near(t)
	for address, want := range map[string]struct{ known, older bool }{
		"10.1.0.1:80": {true, true}, "10.1.0.2:80": {true, true}, "10.1.0.99:80": {true, true}, "[fd00:1::1]:80": {true, true},
		"198.51.100.1:80": {false, true}, "[2001:db8::1]:443": {false, true}, "10.96.0.99:80": {false, true},
		"10.96.0.10:80": {}, "10.96.0.10:81": {}, "[fd00:96::10]:80": {}, // a Service
		"10.1.0.50:80": {}, "10.1.0.50:81": {true, true}, "[fd00:1::50]:80": {}, "10.1.0.51:80": {}, // its external addresses
		"10.1.0.70:10000": {}, "[fd00:1::70]:8080": {}, "10.1.0.71:10000": {}, "10.1.0.72:8443": {}, // gateways
		"10.1.0.60:6443": {}, "10.1.0.60:80": {true, true}, // the API server
		"192.0.2.1:8080": {true, true}, "192.0.2.1:9090": {true, true}, "192.0.2.1:10250": {}, "192.0.2.1:30080": {},
		"192.0.2.2:8080": {}, "192.0.2.3:8080": {}, "192.0.2.3:10256": {}, // no pod of shop, or a finished one
		"10.1.0.254:10250": {}, "10.1.0.254:30080": {}, "10.1.0.254:80": {true, true}, "10.1.0.1:30080": {true, true}, // a bridge; a pod
		"127.0.0.1:80": {}, "169.254.169.254:80": {}, "[fd00:ec2::254]:80": {}, "[::ffff:10.1.0.1]:80": {},
	} {
		at := netip.MustParseAddrPort(address)
		for ranges, want := range map[*clusterset.OwnRanges]bool{new(ownRanges(t)): want.known, {}: want.older} {
			err := n.backendRules(t.Context(), "shop", *ranges).Check(at.Addr().String(), listeningAt(at))
			if (err == nil) != want {
				t.Errorf("%s, %d ranges: %v, want allowed: %t", address, len(ranges.Pods), err, want)
			}
		}
	}
}

// A gateway refuses the clients that are gateways of its cluster, of either family, but not those on the node of a gateway.
//
// spec: W5
func TestRefusesClient(t *testing.T) {
	t.Parallel()
	onNode := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "on-node", Labels: map[string]string{labelName: clusterset.GatewayService}},
		Spec:       corev1.PodSpec{HostNetwork: true}, Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "192.0.2.9"}}},
	}
	n := near(t, onNode)
	for address, want := range map[string]bool{
		"10.1.0.70": true, "fd00:1::70": true, "10.1.0.71": true, "10.1.0.72": true,
		"10.1.0.1": false, "10.1.0.2": false, "fd00:1::1": false, "192.0.2.1": false, "192.0.2.9": false, "198.51.100.1": false,
	} {
		check.Equal(t, address, want, n.refusesClient(t.Context(), netip.MustParseAddr(address)))
	}
}

// endpointsOf returns what a stream of web with these slices gets.
func endpointsOf(t *testing.T, all ...*discoveryv1.EndpointSlice) string {
	t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "loop"}, Spec: corev1.ServiceSpec{
		IPFamilies: []corev1.IPFamily{"IPv4", "IPv6"}, Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
	}}
	exported := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "loop"}}
	exported.Status.Conditions = []metav1.Condition{{Type: "Valid", Status: "True"}, {Type: "Ready", Status: "True"}}
	objects := []client.Object{service, exported}
	for i, slice := range all {
		slice.ObjectMeta = metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("loop-", i), Labels: map[string]string{discoveryv1.LabelServiceName: "loop"}}
		slice.AddressType = "IPv4"
		if netip.MustParseAddr(slice.Endpoints[0].Addresses[0]).Is6() {
			slice.AddressType = "IPv6"
		}
		slice.Ports[0].Name, slice.Ports[0].Protocol = new("http"), new(corev1.ProtocolTCP)
		objects = append(objects, slice)
	}
	n := near(t, objects...)
	b := backends{n.cache, func(ctx context.Context, _ clusterset.ClusterID, namespace string) export.BackendRules {
		return n.backendRules(ctx, namespace, ownRanges(t))
	}, &exports{cache: n.cache}}
	got, refusal := b.Endpoints("west", wire.Open{Namespace: "shop", Service: "loop", Port: 80})
	if refusal != nil {
		return refusal.Error()
	}
	text := ""
	for _, address := range got.Addresses {
		if got.Permit(address) == nil {
			text += address.String() + " "
		}
	}
	return text
}

// Hand-made slices lead a stream only where an export may lead: to an endpoint of the other family, or to one that terminates, if no other
// passes.
//
// spec: W5, G3
func TestAllowedEndpoints(t *testing.T) {
	t.Parallel()
	slice := func(port int32, addresses ...string) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{{Port: &port}}}
		for _, address := range addresses {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
		}
		return s
	}
	terminating := slice(8080, "10.1.0.1")
	terminating.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
	const none = "refused: NoEndpoint: service shop/loop: an export leads to pods of its cluster only, and its endpoints are none: " +
		"see the condition Ready of its ServiceExport"
	for name, test := range map[string]struct {
		slices []*discoveryv1.EndpointSlice
		want   string
	}{
		"a pod":                       {[]*discoveryv1.EndpointSlice{slice(8080, "10.1.0.1")}, "10.1.0.1:8080 "},
		"a gateway and a pod":         {[]*discoveryv1.EndpointSlice{slice(10000, "10.1.0.70", "10.1.0.1")}, "10.1.0.1:10000 "},
		"gateways":                    {[]*discoveryv1.EndpointSlice{slice(10000, "10.1.0.70", "10.1.0.71"), slice(10000, "fd00:1::70")}, none},
		"a gateway, and IPv6":         {[]*discoveryv1.EndpointSlice{slice(10000, "10.1.0.70"), slice(8080, "fd00:1::1")}, "[fd00:1::1]:8080 "},
		"a gateway, and terminating":  {[]*discoveryv1.EndpointSlice{slice(10000, "10.1.0.70"), terminating}, "10.1.0.1:8080 "},
		"no endpoint":                 {nil, ""},
		"the API server's Service":    {[]*discoveryv1.EndpointSlice{slice(443, "10.96.0.10")}, none},
		"another cluster's addresses": {[]*discoveryv1.EndpointSlice{slice(443, "198.51.100.1")}, none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "endpoints", test.want, endpointsOf(t, test.slices...))
		})
	}
}
