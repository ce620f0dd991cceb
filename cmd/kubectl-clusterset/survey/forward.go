// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dnsService is the Service of the cluster DNS in kube-system, by convention for any DNS server.
const dnsService = "kube-dns"

// errNoDNS is returned if the cluster DNS has no ready pod.
var errNoDNS = errors.New("no ready pod is behind Service kube-system/" + dnsService)

// errOtherDNS is returned if the cluster DNS is not the usual Service. This is not a fault, but it cannot be queried.
var errOtherDNS = errors.New("no pods of a Service kube-system/" + dnsService + " are this cluster's DNS")

// maxResolvers is the number of DNS pods of a cluster that are queried at most.
const maxResolvers = 10

// ClusterDNS returns Resolvers for the ready pods of the cluster DNS, at most ten. They query over TCP, through the API server.
func ClusterDNS(ctx context.Context, m *Member) ([]Resolver, error) {
	found := &discoveryv1.EndpointSliceList{}
	if err := m.Client.List(ctx, found, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{discoveryv1.LabelServiceName: dnsService}); err != nil {
		return nil, fmt.Errorf("list the endpoints of Service %s: %w", dnsService, err)
	}
	service := &corev1.Service{}
	err := m.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: dnsService}, service)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get Service %s: %w", dnsService, err)
	}
	isElsewhere := err != nil
	pods := map[dnsPod]bool{} // a pod has one endpoint per family
	for _, slice := range found.Items {
		port := portNamed(slice.Ports, "dns-tcp")
		for _, endpoint := range slice.Endpoints {
			ready := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
			isPod := endpoint.TargetRef != nil && endpoint.TargetRef.Kind == "Pod"
			isElsewhere = isElsewhere || !isPod || port == 0
			if ready && port != 0 && isPod {
				pods[dnsPod{m, endpoint.TargetRef.Name, port}] = true
			}
		}
	}
	switch {
	case len(pods) == 0 && isElsewhere:
		return nil, errOtherDNS
	case len(pods) == 0:
		return nil, errNoDNS
	}
	sorted := slices.SortedFunc(maps.Keys(pods), func(a, b dnsPod) int { return strings.Compare(a.pod, b.pod) })
	result := make([]Resolver, 0, maxResolvers)
	for _, pod := range sorted[:min(maxResolvers, len(sorted))] {
		result = append(result, pod)
	}
	return result, nil
}

func portNamed(ports []discoveryv1.EndpointPort, name string) int32 {
	for _, port := range ports {
		if port.Name != nil && *port.Name == name && port.Port != nil {
			return *port.Port
		}
	}
	return 0
}

// dnsPod is a pod of the cluster DNS.
type dnsPod struct {
	member *Member
	pod    string
	port   int32
}

// String returns the pod's name.
func (f dnsPod) String() string { return "pod " + f.pod }

// Exchange forwards a port to the pod for the duration of one query.
func (f dnsPod) Exchange(ctx context.Context, question *dns.Msg) (*dns.Msg, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	forwarder, ready, err := f.forwarder(ctx)
	if err != nil {
		return nil, fmt.Errorf("reach pod %s: %w", f.pod, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case err := <-ended:
		return nil, fmt.Errorf("reach pod %s: %w", f.pod, err)
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return nil, fmt.Errorf("reach pod %s: %w", f.pod, err)
	}
	reply, err := Server(net.JoinHostPort("127.0.0.1", strconv.Itoa(int(ports[0].Local)))).Exchange(ctx, question)
	cancel()
	if err := <-ended; err != nil && reply == nil {
		return nil, fmt.Errorf("reach pod %s: %w", f.pod, err)
	}
	return reply, err
}

func (f dnsPod) forwarder(ctx context.Context) (*portforward.PortForwarder, <-chan struct{}, error) {
	set, err := kubernetes.NewForConfig(f.member.KubeContext.Config)
	if err != nil {
		return nil, nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(f.member.KubeContext.Config)
	if err != nil {
		return nil, nil, err
	}
	at := set.CoreV1().RESTClient().Get().Resource(string(corev1.ResourcePods)).Namespace(metav1.NamespaceSystem).Name(f.pod).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at)
	ready := make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", f.port)}, ctx.Done(), ready, io.Discard, io.Discard)
	return forwarder, ready, err
}
