// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// The availability that importers know is that of all families: endpoints of the second one are used if the first has none.
//
// spec: G3
func TestAddressesOfFamilies(t *testing.T) {
	t.Parallel()
	slice := func(family discoveryv1.AddressType, address string, ready bool) discoveryv1.EndpointSlice {
		return discoveryv1.EndpointSlice{
			AddressType: family, Ports: []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}},
			Endpoints: []discoveryv1.Endpoint{{
				Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready, Terminating: new(false)},
			}},
		}
	}
	port := clusterset.Port{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}
	for _, test := range []struct {
		ready4, ready6 bool
		families       []corev1.IPFamily
		want           string
	}{
		{true, true, []corev1.IPFamily{"IPv4", "IPv6"}, "[10.1.0.1:8080]"},
		{true, true, []corev1.IPFamily{"IPv6", "IPv4"}, "[[fd00::1]:8080]"},
		{false, true, []corev1.IPFamily{"IPv4", "IPv6"}, "[[fd00::1]:8080]"},
		{false, true, []corev1.IPFamily{"IPv4"}, "[]"},
		{false, false, []corev1.IPFamily{"IPv4", "IPv6"}, "[]"},
	} {
		all := []discoveryv1.EndpointSlice{slice("IPv4", "10.1.0.1", test.ready4), slice("IPv6", "fd00::1", test.ready6)}
		service := &corev1.Service{Spec: corev1.ServiceSpec{IPFamilies: test.families}}
		if got := fmt.Sprint(addressesIn(service, port, "", all)); got != test.want {
			t.Errorf("families %v, ready %t and %t: %s, want %s", test.families, test.ready4, test.ready6, got, test.want)
		}
	}
}

// A stream leads only to endpoints with exactly its hostname, or to those without one.
// spec: G9
func TestAddressesOfHostname(t *testing.T) {
	t.Parallel()
	endpoint := func(hostname, address string) discoveryv1.Endpoint {
		e := discoveryv1.Endpoint{Addresses: []string{address}}
		if hostname != "" {
			e.Hostname = &hostname
		}
		return e
	}
	all := []discoveryv1.EndpointSlice{{
		AddressType: "IPv4", Ports: []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}},
		Endpoints: []discoveryv1.Endpoint{endpoint("db-0", "10.1.0.1"), endpoint("db-1", "10.1.0.2"), endpoint("", "10.1.0.3"), endpoint("", "10.1.0.4")},
	}}
	port := clusterset.Port{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}
	headless := corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, IPFamilies: []corev1.IPFamily{"IPv4"}}
	for hostname, want := range map[string]string{
		"db-0": "[10.1.0.1:8080]", "db-1": "[10.1.0.2:8080]", "db": "[]", "db-2": "[]", "": "[10.1.0.3:8080 10.1.0.4:8080]",
	} {
		if got := fmt.Sprint(addressesIn(&corev1.Service{Spec: headless}, port, hostname, all)); got != want {
			t.Errorf("hostname %q: %s, want %s", hostname, got, want)
		}
	}
}
