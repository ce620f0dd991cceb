// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	gatewayports "github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// BackendRules decide to which endpoints the exports of a namespace may lead: to pods of this cluster, and never through its gateways to
// another cluster (W5). They apply to published addresses, to published availability and to the streams of gateways.
type BackendRules struct {
	// Namespace is that of the exports.
	Namespace string
	// Ranges are those of this cluster. If they are not known, addresses outside of them are allowed.
	Ranges clusterset.OwnRanges
	// At returns what this cluster has at an address and port.
	At func(netip.Addr, clusterset.EndpointPort) Occupants
}

// Occupants are what a cluster has at an address and port.
type Occupants struct {
	// Service is set if kube-proxy sends what arrives there to the endpoints of a Service, for example by its external IP, and NodePort if
	// it does so if the address is that of a node.
	Service, NodePort bool
	// Gateway is set if a gateway of this cluster has the address, and APIServer if this cluster's API server listens there.
	Gateway, APIServer bool
	// Pods are the pods with the address that have not finished. If AllPods is not set, they are those in the host network.
	Pods    []Pod
	AllPods bool
}

// Pod is a pod with an address.
type Pod struct {
	Namespace   string
	HostNetwork bool
	// Ports are those that the pod declares.
	Ports []PodPort
}

// PodPort is a port that a pod declares.
type PodPort struct {
	Protocol corev1.Protocol
	Port     int32
}

// outside is the error of an address that is in no range of the Member.
type outside struct{ error }

// Check returns why no export of the namespace may lead to an address and port; nil if it may.
func (f BackendRules) Check(address string, port clusterset.EndpointPort) error {
	ip, err := clusterset.ParseUnicast(address)
	if err != nil {
		return err
	}
	at := f.At(ip, port)
	onNode := slices.ContainsFunc(at.Pods, func(p Pod) bool { return p.HostNetwork })
	switch {
	case clusterset.InAny(f.Ranges.Services, ip):
		return fmt.Errorf("%s is in a range of this cluster's Services", ip)
	case at.Service:
		return fmt.Errorf("%s is an address of a Service of this cluster", endpoint(ip, port))
	case at.Gateway && (!onNode || port.Port == 0 || port.Port >= gatewayports.First && port.Port <= gatewayports.Last):
		return fmt.Errorf("%s is the address of a gateway of this cluster", ip)
	case at.APIServer:
		return fmt.Errorf("%s is this cluster's API server", endpoint(ip, port))
	case onNode && at.NodePort:
		return fmt.Errorf("%s is a node port of a Service", endpoint(ip, port))
	case onNode && f.hasPod(at.Pods, port):
		return nil
	case onNode || len(at.Pods) == 0 && !clusterset.InAny(f.Ranges.Pods, ip) && clusterset.InAny(f.Ranges.Nodes, ip):
		return fmt.Errorf("%s is the address of a node, and no pod of namespace %s in its host network declares port %s", ip, f.Namespace, number(port))
	case f.Ranges.Pods != nil && !clusterset.InAny(f.Ranges.Pods, ip):
		return outside{fmt.Errorf("%s is outside the cluster's pod and node CIDRs", ip)}
	case at.AllPods && len(at.Pods) == 0 && (at.NodePort || isPortOfNodes(port.Port)): // nodes also listen at the addresses of their bridges
		return fmt.Errorf("%s is the address of no pod, and the port is one of nodes", endpoint(ip, port))
	}
	return nil
}

// hasPod reports whether a pod of the namespace in the host network declares a port.
func (f BackendRules) hasPod(pods []Pod, port clusterset.EndpointPort) bool {
	return slices.ContainsFunc(pods, func(p Pod) bool {
		return p.HostNetwork && p.Namespace == f.Namespace &&
			(port == clusterset.EndpointPort{} || slices.Contains(p.Ports, PodPort{port.Protocol, port.Port}))
	})
}

// isPortOfNodes reports whether a program of Kubernetes listens at a port of each address of its node: etcd, the API server, the kubelet,
// kube-proxy, the scheduler and the controller manager.
func isPortOfNodes(port int32) bool {
	return port >= 2379 && port <= 2381 || port == 6443 || port >= 10248 && port <= 10259
}

func endpoint(ip netip.Addr, port clusterset.EndpointPort) string {
	return fmt.Sprintf("%s port %s", ip, number(port))
}

func number(port clusterset.EndpointPort) string {
	if port.Port == 0 {
		return "of any number"
	}
	return fmt.Sprintf("%d/%s", port.Port, port.Protocol)
}

// LeftOut are the reasons why addresses of an export are left out. For those in OutsideRanges, the Member can be changed.
type LeftOut struct{ OutsideRanges, NotPods []error }

// add adds an error of Check, and reports whether there is none.
func (l *LeftOut) add(err error) bool {
	switch {
	case err == nil:
		return true
	case errors.As(err, new(outside)):
		l.OutsideRanges = append(l.OutsideRanges, err)
	default:
		l.NotPods = append(l.NotPods, err)
	}
	return false
}

// Apply returns the slices without the endpoints to which no export may lead, and why. An endpoint that passes with only some ports of its
// slice is in an additional slice with these ports.
func (f BackendRules) Apply(sources []clusterset.Slice) (result []clusterset.Slice, leftOut LeftOut) {
	for _, source := range sources {
		endpoints := source.Endpoints
		source.Endpoints = make([]clusterset.Endpoint, 0, len(endpoints))
		var parts []clusterset.Slice
		for _, endpoint := range endpoints {
			addresses := endpoint.Addresses
			endpoint.Addresses = nil
			for _, address := range addresses {
				passed, ok := f.passing(address, source.Ports, &leftOut)
				if ok && len(passed) == len(source.Ports) {
					endpoint.Addresses = append(endpoint.Addresses, address)
				} else if ok {
					part, one := partWith(&parts, source, passed), endpoint
					one.Addresses = []string{address}
					part.Endpoints = append(part.Endpoints, one)
				}
			}
			if len(endpoint.Addresses) > 0 {
				source.Endpoints = append(source.Endpoints, endpoint)
			}
		}
		result = append(append(result, source), parts...)
	}
	return result, leftOut
}

// passing returns with which ports of a slice an export may lead to an address, and whether it may at all. The addresses of a slice without
// ports are used by DNS only.
func (f BackendRules) passing(address string, listening []clusterset.EndpointPort, leftOut *LeftOut) (passed []clusterset.EndpointPort, ok bool) {
	if len(listening) == 0 {
		return nil, leftOut.add(f.Check(address, clusterset.EndpointPort{}))
	}
	for _, port := range listening {
		if leftOut.add(f.Check(address, port)) {
			passed = append(passed, port)
		}
	}
	return passed, len(passed) > 0
}

// partWith returns the additional slice with some ports of a slice, which it adds if it is missing.
func partWith(parts *[]clusterset.Slice, of clusterset.Slice, listening []clusterset.EndpointPort) *clusterset.Slice {
	for i := range *parts {
		if slices.Equal((*parts)[i].Ports, listening) {
			return &(*parts)[i]
		}
	}
	of.ID, of.Ports, of.Endpoints = clusterset.SliceID(fmt.Sprint(of.ID, listening)), listening, nil
	*parts = append(*parts, of)
	return &(*parts)[len(*parts)-1]
}
