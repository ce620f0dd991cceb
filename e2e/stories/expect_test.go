// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// everyone is how many requests find, in all likelihood, each of a few pods that share them at random.
const everyone = 40

// awaitAnswers waits until all requests to a port are answered, and by all of these clusters and no other. Until kube-proxy
// knows of a change, which takes it a second or so, requests may fail or go where they went before.
func (p *place) awaitAnswers(network, host string, port int, clusters ...string) {
	p.Helper()
	what := fmt.Sprintf("answers from %v in cluster %s, at %s:%d over %s", clusters, p.cluster.Name, host, port, network)
	p.eventually(what, func(context.Context) error {
		if err := p.answered(network, host, port); err != nil { // many might take very long to fail
			return err
		}
		return answeredBy(p.ask(network, host, port, everyone), clusters)
	})
}

// awaitAllAnswers is awaitAnswers at port 80 over all networks.
func (p *place) awaitAllAnswers(host string, clusters ...string) {
	p.Helper()
	for _, network := range networks {
		p.awaitAnswers(network, host, 80, clusters...)
	}
}

// awaitAnyAnswer waits until requests to a port are answered, whoever answers.
func (p *place) awaitAnyAnswer(network, host string, port int) {
	p.Helper()
	p.eventually(fmt.Sprintf("an answer in cluster %s, at %s:%d over %s", p.cluster.Name, host, port, network), func(context.Context) error {
		return p.answered(network, host, port)
	})
}

func (p *place) answered(network, host string, port int) error {
	p.Helper()
	if a := p.ask(network, host, port, 1)[0]; a.Error != "" {
		return fmt.Errorf("a request failed: %+v", a)
	}
	return nil
}

// expectAnswers sends requests to a port. The story fails unless all are answered, and by all of these clusters and no other.
func (p *place) expectAnswers(network, host string, port int, clusters ...string) []answer {
	p.Helper()
	answers := p.ask(network, host, port, everyone)
	if err := answeredBy(answers, clusters); err != nil {
		p.Errorf("cluster %s asks %s:%d over %s: %v", p.cluster.Name, host, port, network, err)
	}
	return answers
}

// answeredBy says what is wrong unless all requests were answered, by all of these clusters and no other.
func answeredBy(answers []answer, clusters []string) error {
	got := map[string]int{}
	for _, a := range answers {
		if a.Error != "" {
			return fmt.Errorf("a request failed: %+v", a)
		}
		got[a.Cluster]++
	}
	if want := slices.Sorted(slices.Values(clusters)); !slices.Equal(slices.Sorted(maps.Keys(got)), want) {
		return fmt.Errorf("%v answered, want %v", got, want)
	}
	return nil
}

// expectNoAnswer sends a request to a port. The story fails if it is answered.
func (p *place) expectNoAnswer(network, host string, port int) {
	p.Helper()
	if answer := p.ask(network, host, port, 1)[0]; answer.Error == "" {
		p.Errorf("cluster %s asks %s:%d over %s: want no answer, got %+v", p.cluster.Name, host, port, network, answer)
	}
}
