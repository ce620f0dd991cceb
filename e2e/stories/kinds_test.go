// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// podsOnTheMachinesNetwork: pods with the addresses of their machine are exported with these, and reached from everywhere, if they declare
// the port (W5).
func podsOnTheMachinesNetwork(s *scene) {
	a, b := s.in("a"), s.in("b")
	pods := a.serverSpec()
	pods.HostNetwork = true
	pods.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080}, {ContainerPort: 8080, Protocol: corev1.ProtocolUDP}}
	a.deployPods("web", 1, pods)
	a.create(service("web"), export("web"))
	for _, p := range s.members() {
		p.awaitImport("web", "a")
		p.awaitAllAnswers(s.name("web"), "a")
	}
	b.expectEndpoints("web", a.cluster.MachineAddresses()...)
}

// expectEndpoints fails the story unless these are the addresses of an import's endpoints.
func (p *place) expectEndpoints(name string, want ...netip.Addr) {
	p.Helper()
	all, err := p.mirrored(p.Context(), name)
	lab.Must(p, err)
	var got []netip.Addr
	for _, slice := range all {
		for _, e := range slice.Endpoints {
			for _, address := range e.Addresses {
				got = append(got, netip.MustParseAddr(address))
			}
		}
	}
	slices.SortFunc(got, netip.Addr.Compare)
	slices.SortFunc(want, netip.Addr.Compare)
	if !slices.Equal(got, want) {
		p.Errorf("cluster %s: the endpoints of %s are %v, want %v", p.cluster.Name, name, got, want)
	}
}

func (p *place) podAddresses(deployment string) []netip.Addr {
	p.Helper()
	var pods corev1.PodList
	lab.Must(p, p.client.List(p.Context(), &pods, client.InNamespace(p.namespace), client.MatchingLabels{"app": deployment}))
	var all []netip.Addr
	for _, pod := range pods.Items {
		for _, ip := range pod.Status.PodIPs {
			all = append(all, netip.MustParseAddr(ip.IP))
		}
	}
	return all
}

// servicesForTheOutside: Services of type NodePort and LoadBalancer are imported like any other, without a port on the
// importing cluster's machines, and their own ports on the exporting cluster's machine work as before: they are not
// touched.
func servicesForTheOutside(s *scene) {
	a, b := s.in("a"), s.in("b")
	a.deploy("web", 2)
	for name, kind := range map[string]corev1.ServiceType{"node-port": corev1.ServiceTypeNodePort, "load-balancer": corev1.ServiceTypeLoadBalancer} {
		outside := forWeb(name)
		outside.Spec.Type = kind
		a.create(outside)
		before := outside.Spec.DeepCopy()
		b.reachesNodePorts(outside)
		meanwhile := b.load("tcp4", machineAddress(a, "tcp4"), int(outside.Spec.Ports[0].NodePort), 20)
		a.create(export(name))
		for _, p := range s.members() {
			imported := p.awaitImport(name, "a")
			derived := p.derived(name)
			if imported.Spec.Type != mcsv1beta1.ClusterSetIP || derived.Spec.Type != corev1.ServiceTypeClusterIP {
				s.Errorf("cluster %s: %s became an import of type %s and a Service of type %s, want ClusterSetIP and ClusterIP",
					p.cluster.Name, name, imported.Spec.Type, derived.Spec.Type)
			}
			p.awaitAllAnswers(s.name(name), "a")
		}
		b.reachesNodePorts(outside)
		meanwhile.endClean()
		a.keeps(name, before)
	}
}

// reachesNodePorts waits until this cluster's pods reach a Service of cluster a by the addresses of a's machine. This
// cluster's own machine does not serve these ports.
func (p *place) reachesNodePorts(s *corev1.Service) {
	p.Helper()
	for _, network := range networks {
		port := s.Spec.Ports[0]
		if strings.HasPrefix(network, "udp") {
			port = s.Spec.Ports[1]
		}
		there := machineAddress(p.in("a"), network)
		p.awaitAnswers(network, there, int(port.NodePort), "a")
		p.expectNoAnswer(network, machineAddress(p, network), int(port.NodePort))
	}
}

// machineAddress returns the address of a cluster's machine for a network.
func machineAddress(p *place, network string) string {
	for _, address := range p.cluster.MachineAddresses() {
		if address.Is4() == strings.HasSuffix(network, "4") {
			return address.String()
		}
	}
	return ""
}

func (p *place) keeps(name string, before *corev1.ServiceSpec) {
	p.Helper()
	var now corev1.Service
	lab.Must(p, p.client.Get(p.Context(), p.key(name), &now))
	if diff := cmp.Diff(before, &now.Spec); diff != "" {
		p.Errorf("cluster %s: Service %s has changed (-before +now):\n%s", p.cluster.Name, name, diff)
	}
}
