// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/proxy"
)

// endpoint returns an endpoint in a state: ready, terminating or unready. node may be empty.
func endpoint(address, state, node string) discoveryv1.Endpoint {
	result := discoveryv1.Endpoint{Addresses: []string{address}}
	if state != "ready" {
		result.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(state == "terminating"), Terminating: new(state == "terminating")}
	}
	if node != "" {
		result.NodeName = &node
	}
	return result
}

// slice returns an IPv4 slice with one TCP port.
func slice(port string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints, Ports: []discoveryv1.EndpointPort{{Name: &port, Protocol: new(corev1.ProtocolTCP)}},
	}
}

// TestPorts: each port as name/family/traffic reached/available.
//
// spec: L1
func TestPorts(t *testing.T) {
	t.Parallel()
	service := func(change func(*corev1.ServiceSpec), ports ...string) *corev1.Service {
		s := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", IPFamilies: []corev1.IPFamily{"IPv4"}}}
		for _, port := range ports {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: port, Protocol: corev1.ProtocolTCP})
		}
		if change != nil {
			change(&s.Spec)
		}
		return s
	}
	internal := func(s *corev1.ServiceSpec) { s.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal) }
	external := func(s *corev1.ServiceSpec) {
		s.Type, s.ExternalTrafficPolicy = corev1.ServiceTypeNodePort, corev1.ServiceExternalTrafficPolicyLocal
	}
	headless := func(s *corev1.ServiceSpec) { s.ClusterIP = corev1.ClusterIPNone }
	udp := slice("http", endpoint("10.1.0.1", "ready", ""))
	udp.Ports[0].Protocol = new(corev1.ProtocolUDP)
	unnamed := slice("", endpoint("10.1.0.1", "ready", ""))
	unnamed.Ports[0].Name = nil
	for name, test := range map[string]struct {
		service  *corev1.Service
		slices   []*discoveryv1.EndpointSlice
		want     string
		unserved []proxy.Traffic
	}{
		"none":                             {service(nil, "http"), nil, "http/IPv4/internal 0/0", []proxy.Traffic{proxy.Internal}},
		"ready":                            {service(nil, "http"), all(slice("http", endpoint("10.1.0.1", "ready", ""), endpoint("10.1.0.2", "unready", ""))), "http/IPv4/internal 1/1", nil},
		"terminating":                      {service(nil, "http"), all(slice("http", endpoint("10.1.0.1", "terminating", ""))), "http/IPv4/internal 1/1", nil},
		"ready is better":                  {service(nil, "http"), all(slice("http", endpoint("10.1.0.1", "ready", ""), endpoint("10.1.0.2", "terminating", ""))), "http/IPv4/internal 1/1", nil},
		"in two slices":                    {service(nil, "http"), all(slice("http", endpoint("10.1.0.1", "ready", "")), slice("http", endpoint("10.1.0.1", "ready", ""))), "http/IPv4/internal 1/1", nil},
		"another port":                     {service(nil, "http", "admin"), all(slice("http", endpoint("10.1.0.1", "ready", ""))), "http/IPv4/internal 1/1, admin/IPv4/internal 0/0", nil},
		"another protocol":                 {service(nil, "http"), all(udp), "http/IPv4/internal 0/0", []proxy.Traffic{proxy.Internal}},
		"a port of a slice without a name": {service(nil, ""), all(unnamed), "/IPv4/internal 0/0", []proxy.Traffic{proxy.Internal}},
		"another family": {
			service(func(s *corev1.ServiceSpec) { s.IPFamilies = []corev1.IPFamily{"IPv6", "IPv4"} }, "http"), all(slice("http", endpoint("10.1.0.1", "ready", ""))),
			"http/IPv6/internal 0/0, http/IPv4/internal 1/1", nil,
		},
		"internal Local": {service(internal, "http"), all(slice("http", endpoint("10.1.0.1", "ready", "n"), endpoint("10.2.0.1", "ready", ""))), "http/IPv4/internal 1/2", nil},
		"internal Local, in other clusters": {
			service(internal, "http"), all(slice("http", endpoint("10.2.0.1", "ready", ""))), "http/IPv4/internal 0/1", []proxy.Traffic{proxy.Internal},
		},
		"each node decides": {
			service(internal, "http"), all(slice("http", endpoint("10.1.0.1", "ready", "n"), endpoint("10.1.0.2", "terminating", "n"), endpoint("10.1.0.3", "terminating", "m"))),
			"http/IPv4/internal 2/1", nil,
		},
		"external Local": {
			service(external, "http"), all(slice("http", endpoint("10.2.0.1", "ready", ""))), "http/IPv4/internal 1/1, http/IPv4/external 0/1", []proxy.Traffic{proxy.External},
		},
		"headless":              {service(headless, "http"), all(slice("http", endpoint("10.1.0.1", "ready", ""))), "http/IPv4/internal 1/1", nil},
		"headless, Local":       {service(func(s *corev1.ServiceSpec) { headless(s); internal(s) }, "http"), all(slice("http", endpoint("10.2.0.1", "ready", ""))), "http/IPv4/internal 1/1", nil},
		"headless, no port":     {service(headless), all(&discoveryv1.EndpointSlice{AddressType: "IPv4", Endpoints: []discoveryv1.Endpoint{endpoint("10.1.0.1", "ready", "")}}), "/IPv4/internal 1/1", nil},
		"headless, terminating": {service(headless, "http"), all(slice("http", endpoint("10.1.0.1", "terminating", ""))), "http/IPv4/internal 0/0", []proxy.Traffic{proxy.Internal}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ports, text := proxy.Ports(test.service, test.slices), ""
			for i, p := range ports {
				if i > 0 {
					text += ", "
				}
				text += fmt.Sprintf("%s/%s/%s %d/%d", p.Name, p.Family, p.Traffic, p.Reached, p.Available)
			}
			check.Equal(t, "ports", test.want, text)
			check.Equal(t, "unserved traffic", test.unserved, proxy.Unserved(ports))
		})
	}
}

func all(slices ...*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice { return slices }
