// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// defaultPort is the port of an address that is given without one.
const defaultPort = 443

// Addresses returns the sorted addresses of a Service of gateways, at most MaxGatewayAddresses: those of its load balancer, or those of
// the nodes if its type is NodePort. It returns none if the Service can be reached from its cluster only, or has no TCP port.
func Addresses(service *corev1.Service, nodes []*corev1.Node) []hubv1alpha1.GatewayAddress {
	i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Protocol == corev1.ProtocolTCP || p.Protocol == "" })
	if i < 0 {
		return nil
	}
	port := service.Spec.Ports[i]
	var result []hubv1alpha1.GatewayAddress
	switch service.Spec.Type {
	case corev1.ServiceTypeLoadBalancer:
		for _, ingress := range service.Status.LoadBalancer.Ingress {
			result = append(result, address(cmp.Or(ingress.IP, ingress.Hostname), port.Port)...)
		}
	case corev1.ServiceTypeNodePort:
		for _, node := range nodes {
			for _, host := range hostsOf(node) {
				result = append(result, address(host, port.NodePort)...)
			}
		}
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName:
	}
	return Bounded(result)
}

// Bounded returns addresses sorted, without duplicates, and at most MaxGatewayAddresses.
func Bounded(addresses []hubv1alpha1.GatewayAddress) []hubv1alpha1.GatewayAddress {
	result := slices.Compact(slices.SortedFunc(slices.Values(addresses), func(a, b hubv1alpha1.GatewayAddress) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port))
	}))
	return result[:min(len(result), hubv1alpha1.MaxGatewayAddresses)]
}

// hostsOf returns the external addresses of a node, or the internal ones if it has no other.
func hostsOf(node *corev1.Node) []string {
	for _, kind := range []corev1.NodeAddressType{corev1.NodeExternalIP, corev1.NodeInternalIP} {
		var result []string
		for _, address := range node.Status.Addresses {
			if address.Type == kind {
				result = append(result, address.Address)
			}
		}
		if len(result) > 0 {
			return result
		}
	}
	return nil
}

// address returns an address in the form in which it is published; nothing if the host is neither an IP address nor a DNS name.
func address(host string, port int32) []hubv1alpha1.GatewayAddress {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []hubv1alpha1.GatewayAddress{{Host: ip.Unmap().WithZone("").String(), Port: port}}
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if len(validation.IsDNS1123Subdomain(host)) > 0 {
		return nil
	}
	return []hubv1alpha1.GatewayAddress{{Host: host, Port: port}}
}

// ParseAddress returns the address of a text such as gateway.example.com, 198.51.100.1:8443 or [2001:db8::1]:8443. The port defaults to
// 443.
func ParseAddress(text string) (hubv1alpha1.GatewayAddress, error) {
	host, port := text, int32(defaultPort)
	if _, err := netip.ParseAddr(text); err != nil && strings.Contains(text, ":") {
		before, after, err := net.SplitHostPort(text)
		number, numberErr := strconv.ParseUint(after, 10, 16)
		if err != nil || numberErr != nil || number == 0 {
			return hubv1alpha1.GatewayAddress{}, fmt.Errorf("%q is no address of a gateway: write host or host:port, such as gateway.example.com:443", text)
		}
		host, port = before, int32(number)
	}
	result := address(host, port)
	if result == nil {
		return hubv1alpha1.GatewayAddress{}, fmt.Errorf("%q is no address of a gateway: write host or host:port, such as gateway.example.com:443", text)
	}
	return result[0], nil
}
