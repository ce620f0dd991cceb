// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"fmt"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// aMemberJoinsThenLeaves: under load between two members a third cluster joins. It uses what they export, exports the same
// service and has its share of the traffic. Then it leaves: no member sends it a request any more, and nothing that was imported
// is left in it. Its own Service continues to work, and no request fails anywhere.
func aMemberJoinsThenLeaves(s *scene) {
	a, b, c := s.in("a"), s.in("b"), s.third()
	a.offer("web", 2)
	c.deploy("web", 1)
	c.create(service("web"))     // not exported yet
	a.awaitAnswer(s.name("web")) // its own API server, the hub's, may have been restarted just before
	t := b.traffic("web")

	lab.Must(s, s.Join(s.Context(), "c"))
	c.awaitAnswer(s.name("web"))
	if got := c.from(c.ask("tcp", s.name("web"), 80, 20)); got["a"] != 20 {
		s.Errorf("from cluster c: %v answered, want a alone", got)
	}

	c.create(export("web"))
	everyone := append(s.members(), c)
	for _, p := range everyone {
		p.awaitSources("web", "a", "c")
		p.reached("web", append(a.pods("web"), c.pods("web")...))
	}

	local := c.load("tcp", "web."+s.namespace+".svc.cluster.local", 80, 20)
	lab.Must(s, s.Leave(s.Context(), "c"))
	for _, p := range s.members() {
		p.awaitSources("web", "a")
		p.awaitImport("web", "a")
		p.awaitOnly("web", "a")
	}
	c.awaitNothingOf("")
	if total := local.endClean(); total.ByCluster["c"] == 0 {
		s.Errorf("cluster c's own Service was answered by %v", total.ByCluster)
	}
	t.endUnharmed("a", "c")
}

// awaitOnly waits until 40 requests in a row are answered by one cluster. None may fail.
func (p *place) awaitOnly(service, cluster string) {
	p.Helper()
	p.eventually("answers of cluster "+cluster+" alone in cluster "+p.cluster.Name, func(context.Context) error {
		if got := p.from(p.ask("tcp", p.name(service), 80, 40)); got[cluster] != 40 {
			return fmt.Errorf("%v answered", got)
		}
		return nil
	})
}
