// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Hostnames returns the hostnames of the ready endpoints of a headless service with the TCP ports on which they listen: those that DNS
// would answer (G9). If endpoints of one hostname listen on different ports, those of the first slice are used. The result has at most
// MaxHostnames hostnames, the first in order; the error describes the others, whose number is leftOut.
func Hostnames(ports []clusterset.Port, sources []clusterset.Slice) (result clusterset.Hostnames, leftOut int, surplus error) {
	result = clusterset.Hostnames{}
	for _, source := range sources {
		targets := targetPorts(ports, source.Ports)
		for _, endpoint := range source.Endpoints {
			if !endpoint.IsReady() || len(targets) == 0 {
				continue
			}
			if result[endpoint.Hostname] == nil {
				result[endpoint.Hostname] = map[int32]int32{}
			}
			for port, target := range targets {
				if result[endpoint.Hostname][port] == 0 {
					result[endpoint.Hostname][port] = target
				}
			}
		}
	}
	inOrder := slices.SortedFunc(maps.Keys(result), clusterset.CompareHostnames)
	leftOut = max(0, len(inOrder)-clusterset.MaxHostnames)
	for _, hostname := range inOrder[len(inOrder)-leftOut:] {
		delete(result, hostname)
	}
	if leftOut > 0 {
		surplus = fmt.Errorf("%d of %d hostnames, the last in order: a cluster publishes at most %d hostnames of a headless service for other networks",
			leftOut, len(inOrder), clusterset.MaxHostnames)
	}
	return result, leftOut, surplus
}

// targetPorts returns the numbers of the ports of a slice by the numbers of the TCP Service ports with their names. As kube-proxy, it uses
// the first one of a name.
func targetPorts(ports []clusterset.Port, listening []clusterset.EndpointPort) map[int32]int32 {
	result := map[int32]int32{}
	for _, port := range ports {
		at := slices.IndexFunc(listening, func(l clusterset.EndpointPort) bool { return l.Name == port.Name && l.Protocol == port.Protocol })
		if port.Protocol == corev1.ProtocolTCP && at >= 0 && listening[at].Port != 0 {
			result[port.Port] = listening[at].Port
		}
	}
	return result
}

// OfHostname returns the slices with only the endpoints of a hostname.
func OfHostname(hostname string, sources []clusterset.Slice) []clusterset.Slice {
	var result []clusterset.Slice
	for _, source := range sources {
		source.Endpoints = slices.DeleteFunc(slices.Clone(source.Endpoints), func(e clusterset.Endpoint) bool { return e.Hostname != hostname })
		result = append(result, source)
	}
	return result
}
