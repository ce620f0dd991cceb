// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// whatIsNotExportedStaysPrivate: a service that is not exported, or not any more, has no name in the clusterset, in either
// cluster. In cluster.local each cluster has all of its own services and nothing else: what is exported changes nothing
// there.
func whatIsNotExportedStaysPrivate(s *scene) {
	a, b := s.in("a"), s.in("b")
	a.deploy("web", 2)
	b.deploy("web", 1)
	for _, name := range []string{"private", "public", "withdrawn"} {
		pods := forWeb(name + "-pods")
		pods.Spec.ClusterIP = corev1.ClusterIPNone
		a.create(forWeb(name), pods)
		b.create(forWeb(name)) // never exported
	}
	a.create(export("public"), export("public-pods"), export("withdrawn"), export("withdrawn-pods"))
	for _, p := range s.members() {
		p.awaitImport("withdrawn", "a")
		p.awaitImport("withdrawn-pods", "a")
	}
	a.withdraw("withdrawn")
	a.withdraw("withdrawn-pods")
	for _, p := range s.members() {
		p.awaitImport("public", "a")
		p.awaitImport("public-pods", "a")
		p.awaitGone("withdrawn")
		p.awaitGone("withdrawn-pods")
		p.awaitAnswers("tcp", s.name("public"), 80, "a")
		for _, name := range []string{"private", "private-pods", "withdrawn", "withdrawn-pods"} {
			for _, kind := range []string{"A", "AAAA", "SRV"} {
				p.expectRecords(kind, s.name(name), "NXDOMAIN")
			}
			p.expectNoAnswer("tcp", s.name(name), 80)
		}
	}

	for _, name := range []string{"private", "public", "withdrawn"} {
		for _, p := range s.members() {
			p.expectItsOwn(name, p.clusterIPs(name))
			// CoreDNS divides a weight of 100 by the number of addresses.
			p.expectRecords("SRV", "_http._tcp."+localName(s, name), "NOERROR", "0 50 80 "+localName(s, name)+".")
			p.expectAnswers("tcp", localName(s, name), 80, p.cluster.Name)
		}
		a.expectItsOwn(name+"-pods", a.podAddresses("web"))
		for _, kind := range []string{"A", "AAAA", "SRV"} {
			b.expectRecords(kind, localName(s, name+"-pods"), "NXDOMAIN")
		}
	}
}

// localName returns a service's name in its own cluster.
func localName(s *scene, service string) string {
	return service + "." + s.namespace + ".svc.cluster.local"
}

// expectItsOwn fails the story unless the addresses of a service in cluster.local are these.
func (p *place) expectItsOwn(service string, addresses []netip.Addr) {
	p.Helper()
	for kind := range families {
		var want []string
		for _, address := range addresses {
			if address.Is4() == (kind == "A") {
				want = append(want, address.String())
			}
		}
		p.expectRecords(kind, localName(p.scene, service), "NOERROR", want...)
	}
}

// expectRecords asks the cluster's DNS. The story fails unless this is all that it says.
func (p *place) expectRecords(kind, name, rcode string, want ...string) {
	p.Helper()
	slices.Sort(want)
	if got := p.resolve(kind, name); got.Rcode != rcode || !slices.Equal(got.Answers, want) {
		p.Errorf("cluster %s: DNS says of %s %s: %+v, want %s %v", p.cluster.Name, kind, name, got, rcode, want)
	}
}

func (p *place) clusterIPs(service string) []netip.Addr {
	p.Helper()
	var o corev1.Service
	lab.Must(p, p.client.Get(p.Context(), p.key(service), &o))
	var all []netip.Addr
	for _, ip := range o.Spec.ClusterIPs {
		all = append(all, netip.MustParseAddr(ip))
	}
	return all
}
