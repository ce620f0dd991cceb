// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// indexServiceAddress finds the Services to whose endpoints kube-proxy sends what arrives at an IP address, at an address and port, or at a
// port of a node, which is written without an address.
const indexServiceAddress = "tombolo.service-address"

// labelName is the label by which the manifests select the pods of gateways.
const labelName = "app.kubernetes.io/name"

// neighbours reads from the gateway's cache what this cluster has at an address (W5).
type neighbours struct {
	cache client.Reader
	// namespace is the namespace of the gateways, and podIPs are the addresses of this one.
	namespace string
	podIPs    []string
}

// backendRules returns those for the exports of a namespace. ranges are those of this cluster, as its agent has written them.
func (n neighbours) backendRules(ctx context.Context, namespace string, ranges clusterset.OwnRanges) export.BackendRules {
	return export.BackendRules{
		Namespace: namespace, Ranges: ranges,
		At: func(ip netip.Addr, port clusterset.EndpointPort) export.Occupants { return n.at(ctx, ip, port) },
	}
}

// at returns what is at an address. What cannot be read, because the cache has not started, is a Service, to which no gateway connects.
func (n neighbours) at(ctx context.Context, ip netip.Addr, port clusterset.EndpointPort) export.Occupants {
	pods, err := caches.PodsAt(ctx, n.cache, ip)
	if err != nil {
		return export.Occupants{Service: true}
	}
	result := export.Occupants{Pods: caches.ExportPods(pods), AllPods: true, Gateway: n.isGateway(ctx, ip, pods), APIServer: n.isAPIServer(ctx, ip, port.Port)}
	external := netip.AddrPortFrom(ip, uint16(port.Port)).String()
	result.Service = n.hasService(ctx, external) || n.hasService(ctx, ip.String())
	result.NodePort = n.hasService(ctx, nodePortKey(port.Port))
	return result
}

// refusesClient reports whether a gateway of this cluster has an address, whose connections lead in circles. On a node, the address
// is also the address of other clients: no gateway connects to its listening ports there.
func (n neighbours) refusesClient(ctx context.Context, ip netip.Addr) bool {
	pods, err := caches.PodsAt(ctx, n.cache, ip)
	onNode := slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.Spec.HostNetwork })
	return err != nil || !onNode && n.isGateway(ctx, ip, pods)
}

// isGateway reports whether a gateway of this cluster has an address, at which there are these pods.
func (n neighbours) isGateway(ctx context.Context, ip netip.Addr, pods []corev1.Pod) bool {
	if contains(n.podIPs, ip) || slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return pod.Namespace == n.namespace && pod.Labels[labelName] == clusterset.GatewayService
	}) {
		return true
	}
	return n.lists(ctx, client.ObjectKey{Namespace: n.namespace, Name: clusterset.GatewayService}, ip, nil)
}

func (n neighbours) isAPIServer(ctx context.Context, ip netip.Addr, port int32) bool {
	return n.lists(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, ip, &port)
}

// lists reports whether the slices of a Service have an address, with a port if that is not nil, or cannot be read.
func (n neighbours) lists(ctx context.Context, service client.ObjectKey, ip netip.Addr, port *int32) bool {
	var list discoveryv1.EndpointSliceList
	if err := n.cache.List(ctx, &list, client.InNamespace(service.Namespace), client.MatchingFields{caches.IndexSource: service.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return true
	}
	return slices.ContainsFunc(list.Items, func(slice discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return contains(e.Addresses, ip) }) &&
			(port == nil || slices.ContainsFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool { return p.Port == nil || *p.Port == *port }))
	})
}

func contains(addresses []string, ip netip.Addr) bool {
	return slices.ContainsFunc(addresses, func(address string) bool {
		other, err := netip.ParseAddr(address)
		return err == nil && other.Unmap() == ip
	})
}

// hasService reports whether a Service has a key of indexServiceAddress, or cannot be read.
func (n neighbours) hasService(ctx context.Context, key string) bool {
	var list corev1.ServiceList
	err := n.cache.List(ctx, &list, client.MatchingFields{indexServiceAddress: key}, client.Limit(1), client.UnsafeDisableDeepCopy)
	return err != nil || len(list.Items) > 0
}

func nodePortKey(port int32) string { return fmt.Sprintf(":%d", port) }

// serviceAddresses is the function of indexServiceAddress.
func serviceAddresses(object client.Object) (keys []string) {
	service := object.(*corev1.Service)
	for _, address := range service.Spec.ClusterIPs {
		if ip, err := netip.ParseAddr(address); err == nil { // not None
			keys = append(keys, ip.String())
		}
	}
	external := slices.Clone(service.Spec.ExternalIPs)
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		external = append(external, ingress.IP)
	}
	for _, port := range service.Spec.Ports {
		for _, address := range external {
			if ip, err := netip.ParseAddr(address); err == nil { // a load balancer may have a name
				keys = append(keys, netip.AddrPortFrom(ip.Unmap(), uint16(port.Port)).String())
			}
		}
		if port.NodePort != 0 {
			keys = append(keys, nodePortKey(port.NodePort))
		}
	}
	return keys
}
