// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clientsStick: with session affinity ClientIP a client stays with one pod of all clusters, as it does with one pod of a
// Service of its own cluster; without it the same pods all answer. When the cluster of its pod withdraws, it stays with
// another.
func clientsStick(s *scene) {
	a, b := s.in("a"), s.in("b")
	for _, p := range s.members() {
		p.deploy("web", 2)
		sticky, spread := forWeb("sticky"), forWeb("spread")
		sticky.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		p.create(sticky, spread, export("sticky"), export("spread"))
	}
	for _, p := range s.members() {
		p.awaitImport("spread", "a", "b")
		p.awaitImport("sticky", "a", "b")
		p.awaitAnswers("tcp", s.name("spread"), 80, "a", "b")
		for _, network := range networks {
			p.pinned(network, s.name("sticky"))
			p.pinned(network, "sticky."+s.namespace+".svc.cluster.local")
			if got := answering(p.ask(network, s.name("spread"), 80, 2*everyone)); len(got) != 4 {
				s.Errorf("cluster %s over %s, without affinity: %v answered, want all four pods", p.cluster.Name, network, got)
			}
		}
	}
	before := a.pinned("tcp4", s.name("sticky"))
	stays, leaves := a, b
	if strings.HasPrefix(before, "a/") {
		stays, leaves = b, a
	}
	leaves.withdraw("sticky")
	a.awaitAnswers("tcp4", s.name("sticky"), 80, stays.cluster.Name)
	a.pinned("tcp4", s.name("sticky"))
}

// pinned sends requests to port 80 and returns the pod that answered. The story fails unless one answered them all.
func (p *place) pinned(network, host string) string {
	p.Helper()
	answers := p.ask(network, host, 80, everyone)
	p.from(answers)
	got := answering(answers)
	if len(got) != 1 {
		p.Fatalf("cluster %s asks %s over %s: %v answered, want one pod", p.cluster.Name, host, network, got)
	}
	return got[0]
}

// localTrafficStaysLocal: with internalTrafficPolicy Local a client reaches the pods of its own node alone. Where these are
// not exported, it reaches none, with the same failure as with such a Service of its own cluster.
func localTrafficStaysLocal(s *scene) {
	a, b := s.in("a"), s.in("b")
	local := corev1.ServiceInternalTrafficPolicyLocal
	for _, p := range s.members() {
		p.deploy("web", 1)
		web := service("web")
		web.Spec.InternalTrafficPolicy = &local
		p.create(web, export("web"))
	}
	for _, p := range s.members() {
		p.awaitImport("web", "a", "b")
		for _, network := range networks {
			p.awaitAnswers(network, s.name("web"), 80, p.cluster.Name)
			p.expectAnswers(network, s.name("web"), 80, p.cluster.Name)
		}
	}

	// A Service of b's own with pods of another node. Only its policy removes them.
	elsewhere, itsName := service("elsewhere"), "elsewhere."+s.namespace+".svc.cluster.local"
	elsewhere.Spec.Selector = nil
	b.create(elsewhere)
	for _, slice := range a.slicesOf("web") {
		b.create(userSlice("elsewhere", slice.AddressType, slice.Endpoints...))
	}
	b.awaitAnswers("tcp4", itsName, 80, "a")
	b.awaitAnswers("udp6", itsName, 80, "a")
	change(b, "elsewhere", elsewhere, func(o *corev1.Service) { o.Spec.InternalTrafficPolicy = &local })

	b.withdraw("web")
	b.awaitImport("web", "a")
	for _, network := range []string{"tcp4", "udp6"} { // it fails by silence, which takes its time
		there, here := b.awaitNoAnswer(network, s.name("web"), 80), b.awaitNoAnswer(network, itsName, 80)
		if reason(there) != reason(here) {
			s.Errorf("cluster b over %s: the import fails with %q, a Service of its own with %q", network, there, here)
		}
		a.expectAnswers(network, s.name("web"), 80, "a")
	}
}

// reason returns why a request failed, without the addresses.
func reason(text string) string {
	parts := strings.Split(text, ": ")
	return parts[len(parts)-1]
}

// clientsPreferTheirZone: with trafficDistribution PreferClose, PreferSameZone or PreferSameNode clients reach the pods of
// their own zone, which here is their cluster, as long as it has any, and the others' then. The exporting cluster's hints
// are those that Kubernetes gives its own Service.
func clientsPreferTheirZone(s *scene) {
	a := s.in("a")
	values := map[string]string{
		"close": corev1.ServiceTrafficDistributionPreferClose,
		"zone":  corev1.ServiceTrafficDistributionPreferSameZone,
		"node":  corev1.ServiceTrafficDistributionPreferSameNode,
	}
	for _, p := range s.members() {
		p.deploy("web", 2)
		for name, value := range values {
			near := forWeb(name)
			near.Spec.TrafficDistribution = &value
			p.create(near, export(name))
		}
	}
	for _, p := range s.members() {
		for name := range values {
			p.awaitImport(name, "a", "b")
			p.awaitAllAnswers(s.name(name), p.cluster.Name)
		}
	}
	a.hintsAreKubernetesOwn("close")
	a.hintsAreKubernetesOwn("zone")

	a.scale("web", 0)
	for name := range values {
		a.awaitAllAnswers(s.name(name), "b")
	}
}

// hintsAreKubernetesOwn waits until the mirrored slices of this cluster's own pods have the hints that the Service's have.
func (p *place) hintsAreKubernetesOwn(service string) {
	p.Helper()
	p.eventually("hints of "+service, func(ctx context.Context) error {
		want := hints(p.slicesOf(service))
		all, err := p.mirrored(ctx, service)
		if err != nil {
			return err
		}
		got := hints(all)
		maps.DeleteFunc(got, func(address, _ string) bool { return want[address] == "" })
		if len(want) == 0 || !maps.Equal(got, want) {
			return fmt.Errorf("Kubernetes gives %v, the import has %v", want, got)
		}
		return nil
	})
}

// hints returns the zones that the endpoints of slices are for, by their addresses.
func hints(slices []discoveryv1.EndpointSlice) map[string]string {
	all := map[string]string{}
	for _, slice := range slices {
		for _, e := range slice.Endpoints {
			if e.Hints != nil {
				for _, zone := range e.Hints.ForZones {
					all[e.Addresses[0]] += zone.Name + " "
				}
			}
		}
	}
	return all
}

// slicesOf returns the EndpointSlices of a Service of this cluster.
func (p *place) slicesOf(service string) []discoveryv1.EndpointSlice {
	p.Helper()
	var list discoveryv1.EndpointSliceList
	err := p.client.List(p.Context(), &list, client.InNamespace(p.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service})
	if err == nil && len(list.Items) == 0 {
		err = errors.New("there are none")
	}
	if err != nil {
		p.Fatalf("cluster %s: the EndpointSlices of %s: %v", p.cluster.Name, service, err)
	}
	return list.Items
}

// userSlice returns an EndpointSlice that a user writes, with the ports of service.
func userSlice(service string, family discoveryv1.AddressType, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	var ports []discoveryv1.EndpointPort
	for name, protocol := range map[string]corev1.Protocol{"http": corev1.ProtocolTCP, "udp": corev1.ProtocolUDP} {
		ports = append(ports, discoveryv1.EndpointPort{Name: &name, Protocol: &protocol, Port: new(int32(8080))})
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name:   service + "-" + strings.ToLower(string(family)),
			Labels: map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "user"},
		},
		AddressType: family,
		Ports:       ports,
		Endpoints:   endpoints,
	}
}

// awaitNoAnswer waits until a request to a port fails, and returns why it did.
func (p *place) awaitNoAnswer(network, host string, port int) string {
	p.Helper()
	var failure string
	p.eventually(fmt.Sprintf("silence in cluster %s, at %s:%d over %s", p.cluster.Name, host, port, network), func(context.Context) error {
		answer := p.ask(network, host, port, 1)[0]
		if failure = answer.Error; failure == "" {
			return fmt.Errorf("there is an answer: %+v", answer)
		}
		return nil
	})
	return failure
}

// answering returns the pods that answered, sorted, each with its cluster.
func answering(answers []answer) []string {
	all := map[string]bool{}
	for _, a := range answers {
		if a.Error == "" {
			all[a.Cluster+"/"+a.Pod] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
