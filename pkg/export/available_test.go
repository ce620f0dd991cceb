// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/check"
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
