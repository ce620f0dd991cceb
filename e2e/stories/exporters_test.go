// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"time"
)

// twoExporters: two clusters that export a service serve it together, over TCP and UDP, IPv4 and IPv6. When one withdraws
// its export, while both clusters send requests all the time, the other serves on and no request fails. When the last one
// withdraws, the name and all objects are gone everywhere, within seconds.
func twoExporters(s *scene) {
	a, b := s.in("a"), s.in("b")
	a.offer("web", 2)
	b.offer("web", 2)
	for _, p := range s.members() {
		p.awaitImport("web", "a", "b")
		p.awaitAllAnswers(s.name("web"), "a", "b")
	}

	var loads []*load
	for _, p := range s.members() {
		for _, network := range networks {
			loads = append(loads, p.load(network, s.name("web"), 80, 15))
		}
	}
	for _, p := range s.members() {
		p.expectAnswers("tcp", s.name("web"), 80, "a", "b")
	}
	a.withdraw("web")
	for _, p := range s.members() {
		p.awaitImport("web", "b")
		p.awaitAllAnswers(s.name("web"), "b")
	}
	for _, l := range loads {
		total := l.endClean()
		if total.ByCluster["a"] == 0 || total.ByCluster["b"] == 0 {
			s.Errorf("cluster %s: %s: %v answered, want both before the withdrawal and b after it", l.place.cluster.Name, l.what, total.ByCluster)
		}
	}

	withdrawn := time.Now()
	b.withdraw("web")
	for _, p := range s.members() {
		p.awaitGone("web")
	}
	s.awaitRecordsDeleted("web")
	if took := time.Since(withdrawn); took > 30*time.Second {
		s.Errorf("%s passed until all was gone everywhere, want seconds", took)
	}
}

// endpointColumns show what kube-proxy goes by, less the ports.
const endpointColumns = "custom-columns=NAME:.metadata.name,ADDRESSES:.endpoints[*].addresses[0],READY:.endpoints[*].conditions.ready," +
	"ZONE:.endpoints[*].zone,FOR:.endpoints[*].hints.forZones[*].name"

// explain prints what a person needs to see why a story failed: its objects on every hop, and the agents' logs since it
// began.
func (s *scene) explain() {
	since := s.begin.UTC().Format(time.RFC3339)
	show := func(args ...string) {
		out, err := s.Kubectl(context.Background(), "", args...)
		if err != nil {
			out = err.Error()
		}
		s.Logf("kubectl %v\n%s", args, out)
	}
	all := append(append([]string(nil), s.Options.Members...), s.Options.Late...)
	for _, name := range all {
		show("--context", name, "-n", s.namespace, "get", "pods,services,serviceexports,serviceimports,endpointslices", "-o", "wide", "--show-labels")
		show("--context", name, "-n", s.namespace, "get", "serviceexports,serviceimports", "-o", "yaml")
		show("--context", name, "-n", s.namespace, "get", "endpointslices", "-o", endpointColumns)
	}
	show("--context", s.Hub.Name, "get", "heartbeats,publishedservices,publishedendpoints", "-A", "-o", "wide")
	for _, name := range all {
		show("--context", name, "-n", "tombolo-system", "get", "pods", "-o", "wide")
		show("--context", name, "-n", "tombolo-system", "logs", "--prefix", "-l", "app.kubernetes.io/name in (tombolo-agent,tombolo-gateway)", "--tail=200", "--since-time="+since)
	}
}
