// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// A slice lists a gateway only if it listens on all ports of the slice. A port on which a gateway listens is left out only for ports before
// it that other gateways serve; a port on which none listens always is. What is left out stays in Listen, and a gateway that listens on all
// ports is used. spec: G2, G8
func TestGatewaysListen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var served []clusterset.Port
		listen := map[int32]int32{}
		for i := range rapid.Int32Range(1, 4).Draw(t, "ports") {
			served = append(served, clusterset.Port{Name: fmt.Sprint("p", i), Protocol: corev1.ProtocolTCP, Port: 80 + i})
			listen[80+i] = 10000 + i
		}
		var addresses []string
		closed := map[string][]int32{}
		for i := range rapid.IntRange(1, 4).Draw(t, "gateways") {
			address := fmt.Sprint("10.1.0.", i)
			addresses = append(addresses, address)
			for number := range int32(len(served)) {
				if rapid.Bool().Draw(t, fmt.Sprint(address, " is closed at ", number)) {
					closed[address] = append(closed[address], 10000+number)
				}
			}
		}
		via := Via{Gateways: gatewaysOf(addresses...), Listen: listen, Closed: func(gateway string, port int32) bool { return slices.Contains(closed[gateway], port) }}
		slice := Slices(exportOf(2, served...), []corev1.IPFamily{corev1.IPv4Protocol}, via)[0]
		check.Equal(t, "the ports that the slice records", listen, slice.Listen)
		listed := map[int32]bool{}
		for _, port := range slice.Ports {
			listed[port.Port] = true
			for _, gateway := range slice.Endpoints {
				if via.Closed(gateway.Addresses[0], port.Port) {
					t.Errorf("gateway %s does not listen on listed port %d", gateway.Addresses[0], port.Port)
				}
			}
		}
		if len(slice.Ports) > 0 && len(slice.Endpoints) == 0 {
			t.Error("ports without gateways")
		}
		for i, port := range served {
			opened := slices.ContainsFunc(addresses, func(a string) bool { return !via.Closed(a, listen[port.Port]) })
			switch {
			case listed[listen[port.Port]] && !opened:
				t.Errorf("no gateway listens for %s", port.Name)
			case !listed[listen[port.Port]] && opened && (i == 0 || len(slice.Ports) == 0):
				t.Errorf("%s is left out for no other port", port.Name)
			}
			check.Equal(t, fmt.Sprint("a gateway listens for ", port.Name), opened, via.Listens(listen[port.Port]))
		}
		for _, address := range addresses {
			if len(closed[address]) == 0 && len(slice.Ports) != len(served) {
				t.Errorf("%s listens on all ports, and the slice has %v", address, slice.Ports)
			}
		}
	})
}

// A gateway in a slice has the node and the zone that it has in the slices of the gateways' Service, and no other field of them.
// spec: G2, D6
func TestGatewaysOnNodes(t *testing.T) {
	t.Parallel()
	gateways := gatewaysOf("10.1.0.1")
	gateways[0].Endpoints = append(gateways[0].Endpoints, clusterset.Endpoint{Addresses: []string{"10.1.0.1"}, Hostname: "h"}, clusterset.Endpoint{Addresses: []string{"10.1.0.2"}})
	via := Via{Gateways: gateways, Listen: map[int32]int32{80: 10000}}
	got := Slices(exportOf(2, http), []corev1.IPFamily{corev1.IPv4Protocol}, via)[0].Endpoints
	slices.SortFunc(got, func(a, b clusterset.Endpoint) int { return slices.Compare(a.Addresses, b.Addresses) })
	check.Equal(t, "endpoints", []clusterset.Endpoint{
		{Addresses: []string{"10.1.0.1"}, Ready: clusterset.True, NodeName: "n", Zone: "z"},
		{Addresses: []string{"10.1.0.2"}, Ready: clusterset.True},
	}, got)
}
