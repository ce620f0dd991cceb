// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

// exportedServiceAnswersEverywhere: from every cluster, pods reach an exported service by its name over TCP and UDP, IPv4
// and IPv6, and only pods of the exporting cluster answer, although the other has the same Service.
func exportedServiceAnswersEverywhere(s *scene) {
	a, b := s.in("a"), s.in("b")
	b.deploy("web", 1)
	b.create(service("web")) // not exported
	a.offer("web", 2)
	for _, p := range s.members() {
		p.awaitName("web")
		for _, network := range networks {
			p.awaitAnyAnswer(network, s.name("web"), 80)
			answers := p.ask(network, s.name("web"), 80, 10)
			if got := p.from(answers); got["a"] != 10 {
				s.Errorf("from cluster %s over %s: %v answered, want a alone", p.cluster.Name, network, got)
			}
		}
	}
}
