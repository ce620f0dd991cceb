// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/wan"
)

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
