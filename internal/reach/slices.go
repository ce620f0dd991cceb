// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Via is what leads to a source: gateways of this cluster, and their listening ports.
type Via struct {
	// Gateways are the EndpointSlices of the gateways' Service, with the gateways to use.
	Gateways []clusterset.Slice
	// Listen are the listening ports by the numbers of the Service ports.
	Listen map[int32]int32
	// Closed reports whether a gateway does not listen on a listening port; nil if all listen on all.
	Closed func(gateway string, port int32) bool
}

// listens reports whether a gateway listens on ports.
func (v Via) listens(gateway string, ports ...int32) bool {
	return v.Closed == nil || !slices.ContainsFunc(ports, func(port int32) bool { return v.Closed(gateway, port) })
}

// Listens reports whether a ready gateway of each IP family that has some listens on a port, or there is none.
func (v Via) Listens(port int32) bool {
	listening := map[discoveryv1.AddressType]bool{}
	for _, slice := range v.Gateways {
		for _, endpoint := range slice.Endpoints {
			if endpoint.IsReady() && len(endpoint.Addresses) > 0 {
				listening[slice.AddressType] = listening[slice.AddressType] || v.listens(endpoint.Addresses[0], port)
			}
		}
	}
	return !slices.Contains(slices.Collect(maps.Values(listening)), false)
}

// Slices returns an export whose path is Gateway as slices whose endpoints are gateways of this cluster, one in each IP family (G2).
// Ports without available endpoints, those without a listening port, and those on which no gateway listens are left out, but stay in
// Listen: gateways learn from it on which ports to listen. A slice lists only gateways that listen on all of its ports (G8), and no more
// gateways than the source has available endpoints, so that sources are used in proportion to them. If all of those terminate, so do the
// gateways in the slice: kube-proxy and preferences then use ready endpoints of other sources first.
func Slices(export clusterset.Export, families []corev1.IPFamily, via Via) []clusterset.Slice {
	var result []clusterset.Slice
	for _, family := range families {
		slice := clusterset.Slice{
			Cluster: export.Cluster, ID: clusterset.SliceID("gateway/" + string(family)), AddressType: discoveryv1.AddressType(family), Listen: via.Listen,
		}
		gateways := via.ordered(export.Key, export.Cluster, slice.AddressType)
		available, ready := int32(0), false
		for _, port := range Ports(export) {
			count, number := export.Available[port.ID()], via.Listen[port.Port]
			if count <= 0 || number == 0 {
				continue
			}
			listening := slices.DeleteFunc(slices.Clone(gateways), func(e clusterset.Endpoint) bool { return !via.listens(e.Addresses[0], number) })
			if len(listening) == 0 && len(gateways) > 0 {
				continue
			}
			gateways = listening
			slice.Ports = append(slice.Ports, clusterset.EndpointPort{Name: port.Name, Protocol: port.Protocol, Port: number, AppProtocol: port.AppProtocol})
			available, ready = max(available, count), ready || !export.Terminating[port.ID()]
		}
		slice.Endpoints = slices.Clip(gateways[:min(int(available), len(gateways))])
		if !ready {
			slice.Endpoints = Terminating(slice.Endpoints)
		}
		result = append(result, slice)
	}
	return result
}

// Terminating returns gateways as the endpoints for a source whose available endpoints terminate. The argument is not changed.
func Terminating(gateways []clusterset.Endpoint) []clusterset.Endpoint {
	result := slices.Clone(gateways)
	for i := range result {
		result[i].Ready, result[i].Serving, result[i].Terminating = clusterset.False, clusterset.True, clusterset.True
	}
	return result
}

// Endpoints returns at most n gateways that listen on all of some listening ports, as the endpoints for a service of a source cluster in one
// IP family.
func (v Via) Endpoints(key clusterset.ServiceKey, source clusterset.ClusterID, family discoveryv1.AddressType, n int, ports ...int32) []clusterset.Endpoint {
	listening := slices.DeleteFunc(v.ordered(key, source, family), func(e clusterset.Endpoint) bool { return !v.listens(e.Addresses[0], ports...) })
	return listening[:min(n, len(listening))]
}

// ordered returns the ready gateways of an IP family as endpoints for a service of a source cluster, with their nodes and zones. They are
// in the order of a rendezvous hash, so that the end of a gateway changes only the slices that have it.
func (v Via) ordered(key clusterset.ServiceKey, source clusterset.ClusterID, family discoveryv1.AddressType) []clusterset.Endpoint {
	var result []clusterset.Endpoint
	for _, slice := range v.Gateways {
		for _, endpoint := range slice.Endpoints {
			if slice.AddressType == family && endpoint.IsReady() && len(endpoint.Addresses) > 0 {
				result = append(result, clusterset.Endpoint{
					Addresses: endpoint.Addresses[:1], Ready: clusterset.True, NodeName: endpoint.NodeName, Zone: endpoint.Zone,
				})
			}
		}
	}
	slices.SortFunc(result, func(a, b clusterset.Endpoint) int {
		return cmp.Or(
			CompareGateways(key, source, a.Addresses[0], b.Addresses[0]), cmp.Compare(b.NodeName, a.NodeName), cmp.Compare(b.Zone, a.Zone),
		)
	})
	return slices.CompactFunc(result, func(a, b clusterset.Endpoint) bool { return a.Addresses[0] == b.Addresses[0] })
}

// CompareGateways compares the addresses of two gateways by the order in which slices for a service of a source cluster list them.
func CompareGateways(key clusterset.ServiceKey, source clusterset.ClusterID, a, b string) int {
	weight := func(address string) []byte {
		sum := sha256.Sum256([]byte(key.String() + " " + string(source) + " " + address))
		return sum[:]
	}
	return bytes.Compare(weight(a), weight(b))
}
