// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: G3
func TestAvailableAddresses(t *testing.T) {
	t.Parallel()
	http := clusterset.Port{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}
	endpoint := func(ready clusterset.Condition, addresses ...string) clusterset.Endpoint {
		return clusterset.Endpoint{Addresses: addresses, Ready: ready, Terminating: clusterset.True}
	}
	slice := func(port int32, endpoints ...clusterset.Endpoint) clusterset.Slice {
		return clusterset.Slice{Ports: []clusterset.EndpointPort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: port}}, Endpoints: endpoints}
	}
	ready, ends := endpoint(clusterset.True, "10.1.0.1", "10.1.0.9"), endpoint(clusterset.False, "10.1.0.2")
	for name, test := range map[string]struct {
		slices []clusterset.Slice
		want   []string
	}{
		"the ready ones, at their first addresses": {[]clusterset.Slice{slice(8080, ready, ends)}, []string{"10.1.0.1:8080"}},
		"each slice has its own port":              {[]clusterset.Slice{slice(8080, ready), slice(8081, ready)}, []string{"10.1.0.1:8080", "10.1.0.1:8081"}},
		"those that end, if none is ready":         {[]clusterset.Slice{slice(8080, ends)}, []string{"10.1.0.2:8080"}},
		"IPv6":                                     {[]clusterset.Slice{slice(8080, endpoint(clusterset.True, "fd00::1"))}, []string{"[fd00::1]:8080"}},
		"one behind one without an address":        {[]clusterset.Slice{slice(8080, endpoint(clusterset.True), ready)}, []string{"10.1.0.1:8080"}},
		"the first port of that name": {[]clusterset.Slice{{Endpoints: []clusterset.Endpoint{ready}, Ports: []clusterset.EndpointPort{
			{Name: "http", Protocol: corev1.ProtocolUDP, Port: 1}, {Name: "http", Protocol: corev1.ProtocolTCP, Port: 2}, {Name: "http", Protocol: corev1.ProtocolTCP, Port: 3},
		}}}, []string{"10.1.0.1:2"}},
		"without an address, or a port": {[]clusterset.Slice{slice(8080, endpoint(clusterset.True), endpoint(clusterset.True, "pod")), slice(0, ready)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, address := range AvailableAddresses(http, test.slices) {
				got = append(got, address.String())
			}
			check.Equal(t, "addresses", test.want, got)
		})
	}
}

// TestListedTwice: an address that several slices list counts once, in the availability and as a backend. As in kube-proxy, the endpoint
// that does not terminate counts.
//
// spec: W2, G3
func TestListedTwice(t *testing.T) {
	t.Parallel()
	http := clusterset.Port{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}
	admin := clusterset.Port{Name: "admin", Protocol: corev1.ProtocolTCP, Port: 90}
	type state struct{ ready, serving, terminating clusterset.Condition }
	const yes, no = clusterset.True, clusterset.False
	ready, unready, ends, ended, unset := state{yes, yes, no}, state{no, no, no}, state{no, yes, yes}, state{no, no, yes}, state{}
	readyToTheEnd := state{yes, yes, yes} // publishNotReadyAddresses
	on := func(port int32, address string, states ...state) clusterset.Slice {
		result := clusterset.Slice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []clusterset.EndpointPort{
			{Name: "http", Protocol: corev1.ProtocolTCP, Port: port}, {Name: "admin", Protocol: corev1.ProtocolTCP, Port: 9090},
		}}
		for _, s := range states {
			result.Endpoints = append(result.Endpoints, clusterset.Endpoint{Addresses: []string{address}, Ready: s.ready, Serving: s.serving, Terminating: s.terminating})
		}
		return result
	}
	for name, test := range map[string]struct {
		slices      []clusterset.Slice
		want        int32
		terminating bool
	}{
		"ready in two slices":             {[]clusterset.Slice{on(8080, "10.1.0.1", ready), on(8080, "10.1.0.1", ready)}, 1, false},
		"ready twice in one slice":        {[]clusterset.Slice{on(8080, "10.1.0.1", ready, unset)}, 1, false},
		"ready and terminating":           {[]clusterset.Slice{on(8080, "10.1.0.1", ready), on(8080, "10.1.0.1", ends)}, 1, false},
		"not ready, and terminating":      {[]clusterset.Slice{on(8080, "10.1.0.1", unready), on(8080, "10.1.0.1", ends)}, 0, false},
		"not ready, and ready to the end": {[]clusterset.Slice{on(8080, "10.1.0.1", unready), on(8080, "10.1.0.1", readyToTheEnd)}, 0, false},
		"ready and not ready":             {[]clusterset.Slice{on(8080, "10.1.0.1", ready), on(8080, "10.1.0.1", unready)}, 1, false},
		"terminating twice":               {[]clusterset.Slice{on(8080, "10.1.0.1", ends), on(8080, "10.1.0.1", ends, ended)}, 1, true},
		"on two ports":                    {[]clusterset.Slice{on(8080, "10.1.0.1", ready), on(8081, "10.1.0.1", ready)}, 2, false},
		"in two forms":                    {[]clusterset.Slice{on(8080, "fd00::1", ready), on(8080, "fd00:0::1", ready)}, 1, false},
		"two addresses":                   {[]clusterset.Slice{on(8080, "10.1.0.1", ready), on(8080, "10.1.0.2", ready)}, 2, false},
		"two in one slice, again":         {[]clusterset.Slice{on(8080, "10.1.0.1", ready), on(8080, "10.1.0.1", ends), on(8080, "10.1.0.2", ends)}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 { // in any order
				ports := []clusterset.Port{http, admin}
				check.Equal(t, "available", test.want, Available(ports, test.slices)[http.ID()])
				check.Equal(t, "terminating", test.terminating, Terminating(ports, test.slices)[http.ID()])
				check.Equal(t, "backends", int(test.want), len(AvailableAddresses(http, test.slices)))
				slices.Reverse(test.slices)
			}
		})
	}
}

// spec: W2
func TestAvailable(t *testing.T) {
	t.Parallel()
	ready := clusterset.Endpoint{}
	unready := clusterset.Endpoint{Ready: clusterset.False}
	ends := clusterset.Endpoint{Ready: clusterset.False, Serving: clusterset.True, Terminating: clusterset.True}
	ended := clusterset.Endpoint{Ready: clusterset.False, Serving: clusterset.False, Terminating: clusterset.True}
	http := clusterset.Port{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}
	slice := func(port string, protocol corev1.Protocol, endpoints ...clusterset.Endpoint) clusterset.Slice {
		return clusterset.Slice{
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []clusterset.EndpointPort{{Name: port, Protocol: protocol}}, Endpoints: endpoints,
		}
	}
	ipv6 := func(slice clusterset.Slice) clusterset.Slice {
		slice.AddressType = discoveryv1.AddressTypeIPv6
		return slice
	}
	for name, test := range map[string]struct {
		slices []clusterset.Slice
		want   int32
	}{
		"no slices":                   {nil, 0},
		"none is ready":               {[]clusterset.Slice{slice("http", "TCP", unready, ended)}, 0},
		"one":                         {[]clusterset.Slice{slice("http", "TCP", ready, unready, ends)}, 1},
		"more are two":                {[]clusterset.Slice{slice("http", "TCP", ready, ready), slice("http", "TCP", ready)}, 2},
		"one of each slice":           {[]clusterset.Slice{slice("http", "TCP", ready), slice("http", "TCP", ready)}, 2},
		"if none is ready, the ends":  {[]clusterset.Slice{slice("http", "TCP", unready, ends)}, 1},
		"another port":                {[]clusterset.Slice{slice("admin", "TCP", ready)}, 0},
		"another protocol":            {[]clusterset.Slice{slice("http", "UDP", ready)}, 0},
		"a slice of the port as well": {[]clusterset.Slice{slice("admin", "TCP", ready), slice("http", "TCP", ready)}, 1},
		"both addresses of one pod":   {[]clusterset.Slice{slice("http", "TCP", ready), ipv6(slice("http", "TCP", ready))}, 1},
		"one family has more":         {[]clusterset.Slice{slice("http", "TCP", ready), ipv6(slice("http", "TCP", ready, ready))}, 2},
		"only the second family":      {[]clusterset.Slice{slice("http", "TCP", unready), ipv6(slice("http", "TCP", ready))}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := clusterset.Availability{http.ID(): test.want}
			check.Equal(t, "availability", want, Available([]clusterset.Port{http}, test.slices))
			if got := Terminating([]clusterset.Port{http}, test.slices)[http.ID()]; got != (name == "if none is ready, the ends") {
				t.Errorf("its available endpoints terminate: %t", got)
			}
		})
	}
}
