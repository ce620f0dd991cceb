// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/wan"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// third returns the place of cluster c, which most stories do not need, with a client pod.
func (s *scene) third() *place {
	s.Helper()
	c := s.in("c")
	c.open()
	c.awaitClient()
	return c
}

// threeClustersInTwoNetworks: a and c are in one network, b is in another. All export a service. Each uses the pods of its own network by
// their addresses, and the others through gateways. When c withdraws its export under load, the others serve. No request of its own network
// fails, and none of b that is sent when b uses the others alone: until then, the gateways of c refuse what is no longer exported.
func threeClustersInTwoNetworks(s *scene) {
	c := s.third()
	all := append(s.members(), c)
	for _, p := range all {
		p.offer("web", 1)
	}
	var loads []*load
	for _, p := range all {
		p.awaitImport("web", "a", "b", "c")
		p.awaitAnswers("tcp4", s.name("web"), 80, "a", "b", "c")
		loads = append(loads, p.load("tcp4", s.name("web"), 80, 20))
	}
	for _, p := range all {
		own := p.podAddresses(clientPod)
		for _, answer := range p.expectAnswers("tcp4", s.name("web"), 80, "a", "b", "c") {
			seen := slices.ContainsFunc(own, func(a netip.Addr) bool { return a.String() == answer.Client })
			if separateNetworks[answer.Cluster] == separateNetworks[p.cluster.Name] && !seen {
				s.Errorf("cluster %s is in the network of cluster %s, and sees a request from %s, want the client's address", answer.Cluster, p.cluster.Name, answer.Client)
			}
		}
		for source, network := range separateNetworks {
			lab.Must(s, p.usesGateways("web", source, network != separateNetworks[p.cluster.Name]))
		}
	}
	c.withdraw("web")
	for _, p := range all {
		p.awaitImport("web", "a", "b")
		p.awaitAnswers("tcp4", s.name("web"), 80, "a", "b")
	}
	others := time.Now()
	for _, l := range loads {
		total, failures := l.end()
		s.Logf("from cluster %s: %d requests, %d failed, answered by %v", l.place.cluster.Name, total.Requests, total.Failed, total.ByCluster)
		if direct := separateNetworks[l.place.cluster.Name] == separateNetworks["c"]; total.Failed > 0 && direct || s.lastOf(failures).After(others) {
			s.Errorf("from cluster %s: requests failed:\n%s", l.place.cluster.Name, strings.Join(failures, "\n"))
		}
		if len(total.ByCluster) != len(all) {
			s.Errorf("from cluster %s: %v answered, want all", l.place.cluster.Name, total.ByCluster)
		}
	}
}

// usesGateways returns an error unless the endpoints of an import that are of a source cluster are gateways, or are not.
func (p *place) usesGateways(service, source string, want bool) error {
	all, err := p.mirrored(p.Context(), service)
	if err != nil {
		return err
	}
	ready := 0
	for _, slice := range all {
		if slice.Labels[mcsv1beta1.LabelSourceCluster] != source || len(slice.Endpoints) == 0 {
			continue
		}
		ready++
		if got := slice.Labels[clusterset.LabelGateway] != ""; got != want {
			return fmt.Errorf("cluster %s: %s of cluster %s is reached through gateways: %v, want %v", p.cluster.Name, service, source, got, want)
		}
	}
	if ready == 0 {
		return fmt.Errorf("cluster %s: %s of cluster %s has no endpoints", p.cluster.Name, service, source)
	}
	return nil
}

// oneClusterHasIPv4Only: c has IPv4 only, and b, in another network, has both families. Over IPv4, c reaches a service of b that has IPv6
// only, and b reaches a service of c. Over IPv6, b reaches a service that a exports too, whichever of the two answers.
func oneClusterHasIPv4Only(s *scene) {
	a, b, c := s.in("a"), s.in("b"), s.third()
	b.deploy("six", 2)
	six, single := service("six"), corev1.IPFamilyPolicySingleStack
	six.Spec.IPFamilyPolicy, six.Spec.IPFamilies = &single, []corev1.IPFamily{corev1.IPv6Protocol}
	b.create(six, export("six"))
	c.offer("four", 1)
	for _, p := range []*place{a, c} {
		p.offer("both", 1)
	}
	c.awaitImport("six", "b")
	c.awaitAnyAnswer("tcp4", s.name("six"), 80)
	c.expectAnswers("tcp4", s.name("six"), 80, "b")
	b.awaitImport("four", "c")
	b.awaitAnyAnswer("tcp4", s.name("four"), 80)
	b.expectAnswers("tcp4", s.name("four"), 80, "c")
	b.awaitImport("both", "a", "c")
	for _, network := range tcpNetworks {
		b.awaitAnswers(network, s.name("both"), 80, "a", "c")
	}
}

// memberMoves: c moves from the network of a to one of its own, and back, while a, b and c send requests. No request fails, and a
// connection that was open before each move continues.
func memberMoves(s *scene) {
	a, b, c := s.in("a"), s.in("b"), s.third()
	a.offer("of-a", 2)
	c.offer("of-c", 2)
	var loads []*load
	for p, name := range map[*place]string{a: "of-c", b: "of-c", c: "of-a"} {
		p.awaitImport(name, name[len("of-"):])
		p.awaitAnyAnswer("tcp4", s.name(name), 80)
		loads = append(loads, p.load("tcp4", s.name(name), 80, 20))
	}
	for _, move := range []struct {
		flags    []string
		gateways bool
	}{
		{[]string{"--network", "moved"}, true},
		{[]string{"--network", hubv1alpha1.DefaultNetwork, "--publish", string(hubv1alpha1.PublishAddresses)}, false},
	} {
		begin, open := time.Now(), a.keepOpen("of-c")
		lab.Must(s, s.Join(s.Context(), "c", move.flags...))
		for p, name := range map[*place]string{a: "of-c", c: "of-a"} {
			p.eventually(fmt.Sprintf("the move %v", move.flags), func(context.Context) error {
				return p.usesGateways(name, name[len("of-"):], move.gateways)
			})
			p.expectAnswers("tcp4", s.name(name), 80, name[len("of-"):])
		}
		open.endUnbroken("c")
		s.Logf("%v: %.1f s", move.flags, time.Since(begin).Seconds())
	}
	for _, l := range loads {
		total := l.endClean()
		s.Logf("from cluster %s: %d requests, the longest time without an answer is %.0f ms", l.place.cluster.Name, total.Requests, total.LongestGapMS)
	}
}

// wayOverThere is what a packet takes from one cluster to the other over the wide area network.
const wayOverThere = 50 * time.Millisecond

// slowPathIsCut: between a and b is a wide area network. A request to a service of a takes b one round trip, because a connection between
// the gateways is ready. When the network is cut, b uses the other source of a service, and when it is back, both.
func slowPathIsCut(s *scene) {
	a, b, c := s.in("a"), s.in("b"), s.third()
	a.offer("far", 1)
	a.offer("both", 1)
	c.offer("both", 1)
	b.awaitImport("both", "a", "c")
	b.awaitAnswers("tcp", s.name("both"), 80, "a", "c")
	b.awaitImport("far", "a")
	b.awaitAnyAnswer("tcp", s.name("far"), 80)

	area, remove := s.wideArea(a, b)
	area.SetDelay(wayOverThere)
	b.awaitAnswers("tcp", s.name("far"), 80, "a") // connections between the gateways that used the former path may be reset
	fastest := time.Hour
	for _, answer := range b.expectAnswers("tcp", s.name("far"), 80, "a") {
		fastest = min(fastest, time.Duration(answer.MS*float64(time.Millisecond)))
	}
	s.Logf("a request takes %s over a path with a round trip of %s", fastest, 2*wayOverThere)
	if fastest < 2*wayOverThere || fastest >= 4*wayOverThere {
		s.Errorf("a request takes %s, want one round trip of %s", fastest, 2*wayOverThere)
	}

	during := b.load("tcp", s.name("both"), 80, 20)
	cut := time.Now()
	area.Cut(true)
	b.awaitSources("both", "c")
	s.Logf("cluster b uses cluster c alone after %.1f s", time.Since(cut).Seconds())
	b.awaitAnswers("tcp", s.name("both"), 80, "c")
	b.expectAnswers("tcp", s.name("both"), 80, "c")

	after := b.load("tcp", s.name("both"), 80, 20)
	area.Cut(false)
	healed := time.Now()
	b.awaitSources("both", "a", "c")
	s.Logf("cluster b uses both clusters %.1f s after the network is back", time.Since(healed).Seconds())
	b.awaitAnswers("tcp", s.name("both"), 80, "a", "c")
	b.awaitAnyAnswer("tcp", s.name("far"), 80)
	after.endClean()
	total, failures := during.end()
	s.sayOutage(total, failures, cut)

	remove()
	b.awaitAnswers("tcp", s.name("far"), 80, "a") // as above; the next story begins with connections that work
}

// wideArea sends what passes between the machines of two clusters over a wide area network, until remove is called or the story ends.
func (s *scene) wideArea(from, to *place) (area *wan.Area, remove func()) {
	s.Helper()
	area = &wan.Area{}
	var attached []*place
	remove = sync.OnceFunc(func() {
		for _, p := range attached {
			_, _ = p.cluster.Run(context.Background(), "nft", "delete table inet wan")
		}
		lab.Must(s, area.Close())
	})
	s.Cleanup(remove)
	for _, p := range []*place{from, to} {
		var own []netip.Prefix
		for _, address := range p.cluster.MachineAddresses() {
			own = append(own, netip.PrefixFrom(address, address.BitLen()))
		}
		machine := p.cluster.Processes()[0]
		lab.Must(s, area.Attach(s.Context(), machine.PID(), "wan", own...))
		attached = append(attached, p)
		// Packets of pods leave with the address of their machine, as on its other interface.
		_, err := p.cluster.Run(s.Context(), "nft", "table inet wan {\nchain postrouting {\ntype nat hook postrouting priority srcnat + 1;\noifname wan masquerade\n}\n}")
		lab.Must(s, err)
	}
	for p, other := range map[*place]*place{from: to, to: from} {
		for _, address := range other.cluster.MachineAddresses() {
			_, err := p.cluster.Run(s.Context(), strings.Fields(fmt.Sprintf("ip route add %s dev wan", address))...)
			lab.Must(s, err)
		}
	}
	return area, remove
}
