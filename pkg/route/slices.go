// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package route

import (
	"bytes"
	"crypto/sha256"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Slices returns an export whose path is Gateway as slices whose endpoints are gateways of this cluster, one in each IP family (G2).
// gateways are the EndpointSlices of the gateways' Service, and listen the listening ports by the numbers of the Service ports. Ports
// without available endpoints, and those without a listening port, are left out, but stay in Listen. A slice lists no more gateways than
// the source has available endpoints, so that sources are used in proportion to them. If all of those terminate, so do the gateways in
// the slice: kube-proxy and preferences then use ready endpoints of other sources first.
func Slices(export clusterset.Export, families []corev1.IPFamily, gateways []clusterset.Slice, listen map[int32]int32) []clusterset.Slice {
	var ports []clusterset.EndpointPort
	available, ready := int32(0), false
	for _, port := range Ports(export) {
		if count := export.Available[port.ID()]; count > 0 && listen[port.Port] != 0 {
			ports = append(ports, clusterset.EndpointPort{
				Name: port.Name, Protocol: port.Protocol, Port: listen[port.Port], AppProtocol: port.AppProtocol,
			})
			available, ready = max(available, count), ready || !export.Terminating[port.ID()]
		}
	}
	var result []clusterset.Slice
	for _, family := range families {
		addressType := discoveryv1.AddressType(family)
		slice := clusterset.Slice{
			Cluster: export.Cluster, ID: clusterset.SliceID("gateway/" + string(family)), AddressType: addressType,
			Ports: ports, Endpoints: Endpoints(export.Key, export.Cluster, addressType, gateways, int(available)), Listen: listen,
		}
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

// Endpoints returns at most n gateways of this cluster as the endpoints for a service of a source cluster, in one IP family. They are
// chosen by rendezvous hash, so that the end of a gateway changes only the slices that have it. They have neither node nor zone.
func Endpoints(key clusterset.ServiceKey, source clusterset.ClusterID, family discoveryv1.AddressType, gateways []clusterset.Slice, n int) []clusterset.Endpoint {
	var addresses []string
	for _, slice := range gateways {
		for _, endpoint := range slice.Endpoints {
			if slice.AddressType == family && endpoint.IsReady() && len(endpoint.Addresses) > 0 {
				addresses = append(addresses, endpoint.Addresses[0])
			}
		}
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	weight := func(address string) []byte {
		sum := sha256.Sum256([]byte(key.String() + " " + string(source) + " " + address))
		return sum[:]
	}
	slices.SortFunc(addresses, func(a, b string) int { return bytes.Compare(weight(a), weight(b)) })
	var result []clusterset.Endpoint
	for _, address := range addresses[:min(n, len(addresses))] {
		result = append(result, clusterset.Endpoint{Addresses: []string{address}, Ready: clusterset.True})
	}
	return result
}
