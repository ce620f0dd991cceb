// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy says which endpoints of a Service get which traffic: kube-proxy decides by the traffic policies of the Service, and DNS
// decides if the Service is headless. It is pure.
package proxy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Traffic is a kind of traffic to a Service.
type Traffic string

const (
	// Internal is the traffic to the cluster IP, or to the addresses that DNS returns for a headless Service.
	Internal Traffic = "internal"
	// External is the traffic from outside the cluster: to a node port, a load balancer or an external IP.
	External Traffic = "external"
)

// Port says how many endpoints a port of a Service has for one kind of traffic in one address family.
type Port struct {
	// Name and Protocol are empty for a headless Service without ports.
	Name     string
	Protocol corev1.Protocol
	Family   corev1.IPFamily
	Traffic  Traffic
	// Local is set if the traffic policy is Local: a node sends this traffic only to its own endpoints.
	Local bool
	// Available is the number of endpoints that get the traffic if its policy is Cluster, and Reached the number of those that get it from any
	// node, by its policy.
	Available, Reached int
}

// Ports returns what the ports of a Service have, by port, family and traffic, in the order of the Service. slices are the EndpointSlices of
// the Service. Endpoints may be condensed: then numbers greater than 0 say only that there are some. Nothing is changed.
func Ports(service *corev1.Service, slices []*discoveryv1.EndpointSlice) []Port {
	ports := service.Spec.Ports
	if len(ports) == 0 {
		ports = []corev1.ServicePort{{}}
	}
	var result []Port
	for _, port := range ports {
		for _, family := range service.Spec.IPFamilies {
			endpoints := endpointsOf(port, family, slices)
			for _, traffic := range kinds(service) {
				p := Port{Name: port.Name, Protocol: port.Protocol, Family: family, Traffic: traffic, Local: isLocal(service, traffic)}
				p.Available = usable(service, endpoints)
				p.Reached = p.Available
				if p.Local {
					p.Reached = usableOnNodes(service, endpoints)
				}
				result = append(result, p)
			}
		}
	}
	return result
}

// Unserved returns the kinds of traffic that reach no endpoint at any of the ports.
func Unserved(ports []Port) []Traffic {
	var result []Traffic
	for _, traffic := range []Traffic{Internal, External} {
		is := func(p Port) bool { return p.Traffic == traffic }
		if slices.ContainsFunc(ports, is) && !slices.ContainsFunc(ports, func(p Port) bool { return is(p) && p.Reached > 0 }) {
			result = append(result, traffic)
		}
	}
	return result
}

// kinds returns the kinds of traffic that a Service accepts.
func kinds(service *corev1.Service) []Traffic {
	spec := &service.Spec
	isExposed := spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer || len(spec.ExternalIPs) > 0
	if isExposed && !isHeadless(service) {
		return []Traffic{Internal, External}
	}
	return []Traffic{Internal}
}

func isHeadless(service *corev1.Service) bool { return service.Spec.ClusterIP == corev1.ClusterIPNone }

// isLocal reports whether the policy for a kind of traffic is Local. It has no meaning for a headless Service, which kube-proxy ignores.
func isLocal(service *corev1.Service, traffic Traffic) bool {
	switch policy := service.Spec.InternalTrafficPolicy; {
	case isHeadless(service):
		return false
	case traffic == External:
		return service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	default:
		return policy != nil && *policy == corev1.ServiceInternalTrafficPolicyLocal
	}
}

// endpointsOf returns the endpoints of the slices of a family that have a port. kube-proxy matches ports by name and protocol. A port
// without a protocol, that of a headless Service without ports, matches all slices.
func endpointsOf(port corev1.ServicePort, family corev1.IPFamily, all []*discoveryv1.EndpointSlice) []discoveryv1.Endpoint {
	var result []discoveryv1.Endpoint
	for _, slice := range all {
		has := port == (corev1.ServicePort{}) || slices.ContainsFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool {
			return p.Name != nil && *p.Name == port.Name && (p.Protocol == nil || *p.Protocol == port.Protocol)
		})
		if has && string(slice.AddressType) == string(family) {
			result = append(result, slice.Endpoints...)
		}
	}
	return result
}

// usable returns the number of endpoints that get traffic: those that are ready, or if none is, those that still serve while they terminate
// (KEP-1669). DNS returns ready ones only. An address counts once.
func usable(service *corev1.Service, endpoints []discoveryv1.Endpoint) int {
	ready, terminating := map[string]bool{}, map[string]bool{}
	for i := range endpoints {
		c := endpoints[i].Conditions
		for _, address := range endpoints[i].Addresses[:min(1, len(endpoints[i].Addresses))] {
			switch {
			case clusterset.ConditionOf(c.Ready) != clusterset.False:
				ready[address] = true
			case clusterset.ConditionOf(c.Serving) != clusterset.False && clusterset.ConditionOf(c.Terminating) == clusterset.True:
				terminating[address] = true
			}
		}
	}
	if len(ready) == 0 && !isHeadless(service) {
		return len(terminating)
	}
	return len(ready)
}

// usableOnNodes returns the number of endpoints that get traffic from their own nodes. An endpoint without a node is in another cluster.
func usableOnNodes(service *corev1.Service, endpoints []discoveryv1.Endpoint) int {
	nodes := map[string][]discoveryv1.Endpoint{}
	for i := range endpoints {
		if node := endpoints[i].NodeName; node != nil && *node != "" {
			nodes[*node] = append(nodes[*node], endpoints[i])
		}
	}
	result := 0
	for _, on := range nodes {
		result += usable(service, on)
	}
	return result
}
