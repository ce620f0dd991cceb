// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"encoding/json"
	"fmt"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

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
			p.awaitAnswers(network, s.name("web"), 80, "a")
			answers := p.ask(network, s.name("web"), 80, 10)
			if got := p.from(answers); got["a"] != 10 {
				s.Errorf("from cluster %s over %s: %v answered, want a alone", p.cluster.Name, network, got)
			}
		}
	}
}

// awaitName waits until a service is imported and every question of many for its address gets one, from the client pod.
// Until it is imported nobody asks: each pod of DNS would go on for a while to say that there is no such name.
func (p *place) awaitName(service string) {
	p.Helper()
	p.eventually("the import of "+service+" in cluster "+p.cluster.Name, func(ctx context.Context) error {
		return p.client.Get(ctx, p.key(service), &mcsv1beta1.ServiceImport{})
	})
	p.eventually("the name of "+service+" in cluster "+p.cluster.Name, func(context.Context) error {
		for _, line := range p.probe("resolve", "-type", "A", "-count", "20", p.name(service)+".") {
			var r records
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				return err
			}
			if r.Rcode != "NOERROR" || len(r.Answers) == 0 {
				return fmt.Errorf("DNS says %+v", r)
			}
		}
		return nil
	})
}
