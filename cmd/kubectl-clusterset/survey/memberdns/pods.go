// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package memberdns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// usualDNS are the Services of the cluster DNS by convention: of kubeadm and most platforms, RKE2, and OpenShift.
var usualDNS = []client.ObjectKey{
	{Namespace: metav1.NamespaceSystem, Name: "kube-dns"},
	{Namespace: metav1.NamespaceSystem, Name: "rke2-coredns-rke2-coredns"},
	{Namespace: metav1.NamespaceSystem, Name: "rke2-coredns"},
	{Namespace: OpenShiftNamespace, Name: "dns-default"},
	{Namespace: metav1.NamespaceSystem, Name: "coredns"},
}

// ErrNoPod is returned if the cluster DNS has no ready pod.
var ErrNoPod = errors.New("no ready pod is behind Service")

// ErrNotFound is returned if the DNS that the cluster's pods use is not found. This is not a fault of the service.
var ErrNotFound = errors.New("could not find the cluster's DNS")

// Limits of the search for the cluster DNS: the number of its pods that are queried, and the time in which a kubelet must answer.
const (
	maxResolvers   = 10
	kubeletTimeout = 2 * time.Second
)

// Resolvers returns Resolvers for the ready pods of the cluster DNS, at most ten. They query over TCP, through the API server. The
// cluster DNS is the Service with the address that kubelets give to pods, or else a usual one.
func Resolvers(ctx context.Context, c client.Reader, config *rest.Config) ([]Resolver, error) {
	services := &corev1.ServiceList{}
	if err := c.List(ctx, services); err != nil {
		return nil, fmt.Errorf("%w: list Services: %w", ErrNotFound, err)
	}
	addresses := kubeletDNS(ctx, c, config)
	service := selectDNS(services.Items, addresses)
	if service == nil {
		return nil, fmt.Errorf("%w (%s)", ErrNotFound, searched(addresses))
	}
	found := &discoveryv1.EndpointSliceList{}
	if err := c.List(ctx, found, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name}); err != nil {
		return nil, fmt.Errorf("%w: list the endpoints of Service %s: %w", ErrNotFound, service.Name, err)
	}
	pods, isElsewhere := dnsPods(service, found.Items)
	switch {
	case len(pods) == 0 && isElsewhere:
		return nil, fmt.Errorf("%w: no pods are behind Service %s", ErrNotFound, client.ObjectKeyFromObject(service))
	case len(pods) == 0:
		return nil, fmt.Errorf("%w %s", ErrNoPod, client.ObjectKeyFromObject(service))
	}
	result := make([]Resolver, 0, maxResolvers)
	for _, name := range slices.Sorted(maps.Keys(pods))[:min(maxResolvers, len(pods))] {
		result = append(result, dnsPod{config, service.Namespace, name, pods[name]})
	}
	return result, nil
}

// searched returns where the cluster DNS was searched.
func searched(addresses []string) string {
	var names []string
	for _, key := range usualDNS {
		names = append(names, key.String())
	}
	text := "there is no Service " + strings.Join(names, ", ")
	if len(addresses) > 0 {
		return "kubelets give pods the address " + strings.Join(addresses, ", ") + ", which is that of no Service, and " + text
	}
	return text
}

// selectDNS returns the Service with one of the addresses, or else the first usual one; nil if there is none. With NodeLocal DNSCache,
// the address may be that of the cache, which has no Service and queries the usual one.
func selectDNS(services []corev1.Service, addresses []string) *corev1.Service {
	for i := range services {
		if slices.ContainsFunc(services[i].Spec.ClusterIPs, func(ip string) bool { return ip != "" && slices.Contains(addresses, ip) }) {
			return &services[i]
		}
	}
	for _, key := range usualDNS {
		for i := range services {
			if client.ObjectKeyFromObject(&services[i]) == key {
				return &services[i]
			}
		}
	}
	return nil
}

// dnsPods returns the ready pods of the cluster DNS with the ports at which they answer over TCP. isElsewhere is true if the Service leads
// to something else than pods, or if it has no TCP port.
func dnsPods(service *corev1.Service, found []discoveryv1.EndpointSlice) (pods map[string]int32, isElsewhere bool) {
	pods = map[string]int32{} // a pod has one endpoint per family
	name, hasTCP := tcpPort(service)
	isElsewhere = !hasTCP
	for _, slice := range found {
		port := portNamed(slice.Ports, name)
		for _, endpoint := range slice.Endpoints {
			ready := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
			isPod := endpoint.TargetRef != nil && endpoint.TargetRef.Kind == "Pod"
			isElsewhere = isElsewhere || !isPod || port == 0
			if ready && port != 0 && isPod {
				pods[endpoint.TargetRef.Name] = port
			}
		}
	}
	return pods, isElsewhere
}

// dnsPort is the port of DNS servers (RFC 1035).
const dnsPort = 53

// tcpPort returns the name of the TCP port of a DNS Service.
func tcpPort(service *corev1.Service) (name string, found bool) {
	for _, port := range service.Spec.Ports {
		if port.Port == dnsPort && port.Protocol == corev1.ProtocolTCP {
			return port.Name, true
		}
	}
	return "", false
}

func portNamed(ports []discoveryv1.EndpointPort, name string) int32 {
	for _, port := range ports {
		isTCP := port.Protocol == nil || *port.Protocol == corev1.ProtocolTCP
		if isTCP && port.Port != nil && (port.Name == nil && name == "" || port.Name != nil && *port.Name == name) {
			return *port.Port
		}
	}
	return 0
}

// kubeletDNS returns the addresses of the DNS that kubelets give to pods: from the configuration of a kubelet, or that which kubeadm has
// stored. It returns none if neither can be read: both need rights that a user may not have.
func kubeletDNS(ctx context.Context, c client.Reader, at *rest.Config) []string {
	config := struct {
		ClusterDNS []string `json:"clusterDNS"`
	}{}
	if content := kubeletConfig(ctx, c, at); content != nil {
		whole := struct {
			Config any `json:"kubeletconfig"`
		}{&config}
		if json.Unmarshal(content, &whole) == nil && len(config.ClusterDNS) > 0 {
			return config.ClusterDNS
		}
	}
	stored := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kubelet-config"}, stored); err != nil {
		return nil
	}
	if err := yaml.Unmarshal([]byte(stored.Data["kubelet"]), &config); err != nil {
		return nil
	}
	return config.ClusterDNS
}

// kubeletConfig returns the configuration of the kubelet of a ready node, nil if it cannot be read.
func kubeletConfig(ctx context.Context, c client.Reader, at *rest.Config) []byte {
	nodes := &corev1.NodeList{}
	if err := c.List(ctx, nodes); err != nil {
		return nil
	}
	i := slices.IndexFunc(nodes.Items, isReadyNode)
	if i < 0 {
		return nil
	}
	set, err := kubernetes.NewForConfig(at)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	content, err := set.CoreV1().RESTClient().Get().Resource("nodes").Name(nodes.Items[i].Name).SubResource("proxy").Suffix("configz").Do(ctx).Raw()
	if err != nil {
		return nil
	}
	return content
}

func isReadyNode(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
