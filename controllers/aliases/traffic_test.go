// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package aliases

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// origin is what an import has.
type origin struct {
	name                                      string
	exists, ready, terminating, gateway, node bool
}

var origins = []origin{
	{name: "no slice"},
	{name: "not ready", exists: true},
	{name: "terminating here", exists: true, terminating: true, node: true},
	{name: "terminating in another cluster", exists: true, terminating: true},
	{name: "ready here", exists: true, ready: true, node: true},
	{name: "ready in another cluster", exists: true, ready: true},
	{name: "behind a gateway", exists: true, ready: true, gateway: true},
	{name: "behind a gateway with a node", exists: true, ready: true, gateway: true, node: true},
}

// exposures are the forms of a Service that differ in the traffic that they accept.
var exposures = []struct {
	name   string
	expose func(*corev1.Service)
}{
	{"ClusterIP", func(*corev1.Service) {}},
	{"NodePort", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }},
	{"LoadBalancer", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer }},
	{"external IP", func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"192.0.2.1"} }},
	{"headless", func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }},
}

// TestTrueOnlyIfServed: for each form of a Service, each pair of traffic policies, and each kind of import and of endpoints, the condition is
// True if and only if an endpoint gets each kind of traffic that the Service accepts. It is the same for condensed endpoints.
//
// spec: L1
func TestTrueOnlyIfServed(t *testing.T) {
	t.Parallel()
	for i := range len(exposures) * len(origins) * 2 * 2 * 2 * 2 * 2 * 2 {
		pick := func(n int) int { // one of n, by the mixed radix of i
			result := i % n
			i /= n
			return result
		}
		exposure, from := exposures[pick(len(exposures))], origins[pick(len(origins))]
		internal := []corev1.ServiceInternalTrafficPolicy{"Cluster", "Local"}[pick(2)]
		external := []corev1.ServiceExternalTrafficPolicy{"Cluster", "Local"}[pick(2)]
		kind := []mcsv1beta1.ServiceImportType{mcsv1beta1.ClusterSetIP, mcsv1beta1.Headless}[pick(2)]
		port, family, service := []string{"http", "other"}[pick(2)], []discoveryv1.AddressType{"IPv4", "IPv6"}[pick(2)], []string{"all", "web"}[pick(2)]
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: service, Annotations: map[string]string{clusterset.AnnotationImport: "web"}},
			Spec: corev1.ServiceSpec{
				ClusterIP: "10.96.0.1", IPFamilies: []corev1.IPFamily{"IPv4"}, InternalTrafficPolicy: &internal, ExternalTrafficPolicy: external,
				Ports: []corev1.ServicePort{{Name: port, Protocol: "TCP"}},
			},
		}
		exposure.expose(s)
		v := view{cluster: "a", service: s, serviceImport: importOf(kind), mirrored: from.slices(family)}
		isServed := from.serves(s, kind) && port == "http" && family == "IPv4"
		name := fmt.Sprintf("%s %s, internal %s, external %s, of a %s import, %s, port %s, %s", exposure.name, service, internal, external, kind, from.name, port, family)
		assertServed(t, name, v, isServed)
		for i := range v.mirrored {
			v.mirrored[i].Endpoints = plan.Condense(v.mirrored[i].Endpoints)
		}
		assertServed(t, name+", condensed", v, isServed)
	}
}

func assertServed(t *testing.T, name string, v view, isServed bool) {
	t.Helper()
	d := decide(v)
	if d.condition == nil {
		t.Fatalf("%s: no condition", name)
	}
	if got := d.condition.Status == metav1.ConditionTrue; got != isServed {
		t.Errorf("%s: %s/%s: %s", name, d.condition.Status, d.condition.Reason, d.condition.Message)
	}
	if d.condition.Status != metav1.ConditionTrue && d.condition.Reason == conditions.ReasonAliased {
		t.Errorf("%s: reason %s", name, d.condition.Reason)
	}
}

// serves says the same as kube-proxy and DNS do, in other words than the product.
func (s origin) serves(service *corev1.Service, kind mcsv1beta1.ServiceImportType) bool {
	isHeadless := service.Spec.ClusterIP == corev1.ClusterIPNone
	isExposed := service.Spec.Type == "NodePort" || service.Spec.Type == "LoadBalancer" || len(service.Spec.ExternalIPs) > 0
	switch {
	case s.gateway && isHeadless != (kind == mcsv1beta1.Headless):
		return false
	case isHeadless:
		return s.ready
	case !s.ready && !s.terminating:
		return false
	case *service.Spec.InternalTrafficPolicy == "Local" && !s.node:
		return false
	}
	return !isExposed || service.Spec.ExternalTrafficPolicy != "Local" || s.node
}

func importOf(kind mcsv1beta1.ServiceImportType) *mcsv1beta1.ServiceImport {
	return &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		// With two ports, a single port is not matched whatever its name.
		Spec: mcsv1beta1.ServiceImportSpec{Type: kind, Ports: []mcsv1beta1.ServicePort{{Name: "http", Protocol: "TCP"}, {Name: "metrics", Protocol: "TCP"}}},
	}
}

// slices returns the mirrored slices. Endpoints on nodes of this cluster are from this cluster, unless they are gateways.
func (s origin) slices(family discoveryv1.AddressType) []*discoveryv1.EndpointSlice {
	if !s.exists {
		return nil
	}
	cluster := "b"
	endpoint := discoveryv1.Endpoint{Addresses: []string{"10.1.0.1"}, Conditions: discoveryv1.EndpointConditions{
		Ready: new(s.ready), Serving: new(s.ready || s.terminating), Terminating: new(s.terminating),
	}}
	if s.node {
		endpoint.NodeName = new("node-1")
	}
	if s.node && !s.gateway {
		cluster = "a"
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "derived-1-" + cluster + "-1", Labels: map[string]string{mcsv1beta1.LabelSourceCluster: cluster}},
		Ports:      []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP)}}, AddressType: family, Endpoints: []discoveryv1.Endpoint{endpoint},
	}
	if s.gateway {
		slice.Labels[clusterset.LabelGateway] = "true"
	}
	return []*discoveryv1.EndpointSlice{slice}
}
