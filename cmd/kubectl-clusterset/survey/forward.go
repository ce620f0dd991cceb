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

// dnsService is the name of the Service that pods ask, in kube-system, by convention whatever answers there.
const dnsService = "kube-dns"

// errNoDNS says that no pod of a cluster answers DNS questions.
var errNoDNS = errors.New("no ready pod is behind Service kube-system/" + dnsService)

// errOtherDNS says that a cluster's DNS is not where it usually is: that is no fault, and nothing is known of its answers.
var errOtherDNS = errors.New("no pods of a Service kube-system/" + dnsService + " are this cluster's DNS")

// mostAsked is how many of a cluster's DNS pods are asked.
const mostAsked = 10

// ClusterDNS returns Resolvers that ask the ready pods of the cluster's own DNS, at most ten of them, through the API server,
// over TCP.
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
	pods := map[forwarded]bool{} // a pod has an endpoint of each family
	for _, slice := range found.Items {
		port := portNamed(slice.Ports, "dns-tcp")
		for _, endpoint := range slice.Endpoints {
			ready := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
			isPod := endpoint.TargetRef != nil && endpoint.TargetRef.Kind == "Pod"
			isElsewhere = isElsewhere || !isPod || port == 0
			if ready && port != 0 && isPod {
				pods[forwarded{m, endpoint.TargetRef.Name, port}] = true
			}
		}
	}
	switch {
	case len(pods) == 0 && isElsewhere:
		return nil, errOtherDNS
	case len(pods) == 0:
		return nil, errNoDNS
	}
	sorted := slices.SortedFunc(maps.Keys(pods), func(a, b forwarded) int { return strings.Compare(a.pod, b.pod) })
	result := make([]Resolver, 0, mostAsked)
	for _, pod := range sorted[:min(mostAsked, len(sorted))] {
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

// forwarded is a pod that answers DNS questions.
type forwarded struct {
	member *Member
	pod    string
	port   int32
}

// String returns the pod's name.
func (f forwarded) String() string { return "pod " + f.pod }

// Exchange forwards a port to the pod for as long as the question takes.
func (f forwarded) Exchange(ctx context.Context, question *dns.Msg) (*dns.Msg, error) {
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

func (f forwarded) forwarder(ctx context.Context) (*portforward.PortForwarder, <-chan struct{}, error) {
	set, err := kubernetes.NewForConfig(f.member.Place.Config)
	if err != nil {
		return nil, nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(f.member.Place.Config)
	if err != nil {
		return nil, nil, err
	}
	at := set.CoreV1().RESTClient().Get().Resource(string(corev1.ResourcePods)).Namespace(metav1.NamespaceSystem).Name(f.pod).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at)
	ready := make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", f.port)}, ctx.Done(), ready, io.Discard, io.Discard)
	return forwarder, ready, err
}
