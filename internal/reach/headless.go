// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// HostnameSlices returns the slices of the virtual IP of a hostname, as Slices does for a service with a cluster IP (G9).
func HostnameSlices(export clusterset.Export, hostname string, families []corev1.IPFamily, via Via) []clusterset.Slice {
	export.Available, export.Terminating = clusterset.Availability{}, nil // the hostnames of a record are those of ready endpoints
	for port := range export.Hostnames[hostname] {
		export.Available[clusterset.PortID{Protocol: corev1.ProtocolTCP, Port: port}] = clusterset.MaxAvailable
	}
	return Slices(export, families, via)
}

// VirtualSlices returns a headless export whose path is Gateway as slices whose endpoints are virtual IPs of this cluster: one for each
// available hostname that has one (G9). addresses are the virtual IPs by hostname. Hostnames with the same ports share a slice. In each IP
// family there is a slice, also if no hostname is available.
func VirtualSlices(export clusterset.Export, families []corev1.IPFamily, addresses map[string][]netip.Addr) []clusterset.Slice {
	groups := map[string][]string{}
	for _, hostname := range slices.SortedFunc(maps.Keys(export.Hostnames), clusterset.CompareHostnames) {
		key := clusterset.FormatListen(export.Hostnames[hostname])
		groups[key] = append(groups[key], hostname)
	}
	keys := slices.Sorted(maps.Keys(groups))
	var result []clusterset.Slice
	for _, family := range families {
		for i := range max(1, len(keys)) {
			slice := clusterset.Slice{
				Cluster: export.Cluster, ID: virtualSliceID(family, i), AddressType: discoveryv1.AddressType(family), Listen: map[int32]int32{},
			}
			if i < len(keys) {
				hostnames := groups[keys[i]]
				slice.Ports = endpointPorts(export, hostnames[0])
				slice.Endpoints = virtualEndpoints(hostnames, family, addresses)
			}
			result = append(result, slice)
		}
	}
	return result
}

func virtualSliceID(family corev1.IPFamily, group int) string {
	return clusterset.SliceID(fmt.Sprintf("virtual/%s/%d", family, group))
}

func endpointPorts(export clusterset.Export, hostname string) []clusterset.EndpointPort {
	var result []clusterset.EndpointPort
	for _, port := range Ports(export) {
		if target := export.Hostnames[hostname][port.Port]; target != 0 {
			result = append(result, clusterset.EndpointPort{Name: port.Name, Protocol: port.Protocol, Port: target, AppProtocol: port.AppProtocol})
		}
	}
	return result
}

func virtualEndpoints(hostnames []string, family corev1.IPFamily, addresses map[string][]netip.Addr) []clusterset.Endpoint {
	var result []clusterset.Endpoint
	for _, hostname := range hostnames {
		for _, address := range addresses[hostname] {
			if address.Is4() == (family == corev1.IPv4Protocol) {
				result = append(result, clusterset.Endpoint{Addresses: []string{address.String()}, Hostname: hostname, Ready: clusterset.True})
			}
		}
	}
	return result
}
