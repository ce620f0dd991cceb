// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stories contains only tests: what users of Tombolo do, on complete clusters with pods, kube-proxy and traffic
// ("make e2e"). Each story is a function that reads from top to bottom and runs in a namespace of its own: stories has the
// list. The clusters are those of package complete.
//
// Clients never retry: a request that fails is a failed request. The stories wait only for what a user would wait for, such
// as a pod that starts or an export that becomes ready.
package stories

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

type story struct {
	name string
	run  func(*scene)
}

// parallel are the stories that keep to their own namespace: several run at a time, the longest first.
var parallel = []story{
	{"internal traffic policy Local stays on the node", localTrafficStaysLocal},
	{"pods of a StatefulSet have names of their own", statefulPodsHaveNamesOfTheirOwn},
	{"what is not exported stays private", whatIsNotExportedStaysPrivate},
	{"a preferred cluster fails over and serves again", preferencesFailOver},
	{"a passive cluster serves alone while the active one cannot", passiveClusterServesAlone},
	{"data stays in the EU even if no cluster there serves", dataStaysInTheEU},
	{"an alias has the pods of all clusters under a local name", aliasesServeByLocalNames},
	{"two exporters serve together, and one serves on", twoExporters},
	{"each port reaches the clusters that expose it", portsThatDisagree},
	{"session affinity holds over all clusters", clientsStick},
	{"traffic prefers its own zone", clientsPreferTheirZone},
	{"pods on the machines network are reached", podsOnTheMachinesNetwork},
	{"NodePort and LoadBalancer are exported and stay as they are", servicesForTheOutside},
	{"a headless service is its ready pods in all clusters", headlessServiceIsItsReadyPods},
}

// serial are the stories that disturb the clusters, or measure: they run one after the other, in this order.
var serial = []story{
	{"a rolling update loses no request", rollingUpdateLosesNoRequest},
	{"agents restart unnoticed", agentsRestartUnnoticed},
	{"the hub restarts unnoticed", hubRestartsUnnoticed},
	{"an import that is deleted while the hub is unreachable keeps its connections", importDeletedWhileHubIsUnreachable},
	{"DNS restarts unnoticed", dnsRestartsUnnoticed},
	{"a Corefile that forwards to an address of the past is named and repaired", staleForwardIsRepaired},
	{"the endpoints of a silent member are withheld", silentMemberIsWithheld},
	{"a member joins and leaves", aMemberJoinsThenLeaves},
}

// TestStories runs the stories, and the commands of the documents, on clusters of their own beside those in separate networks. STORY in the
// environment, a regular expression, chooses some by their names.
//
// spec: E1, E2, E3, E4, C1, C2, C3, C4, C5, C7, R1, R2, R6, I1, I2, I3, D1, D6, D7, D9, N2, N3, N5, N6, N9, W1, W2, G2, G5, G6, G8, G10, A1, A5, P1, L1
//
//nolint:tparallel // the first clusterset runs alone
func TestStories(t *testing.T) {
	lab.NeedComplete(t)
	chosen := regexp.MustCompile(os.Getenv("STORY"))
	all := &summary{}
	t.Cleanup(func() { all.print(t) })
	t.Run("clusterset", func(t *testing.T) { // alone: DNS does not answer in time if all three groups run at once on two cores
		all.runOn(t, newStage, choose(chosen, parallel), choose(chosen, serial))
	})
	t.Run("networks", func(t *testing.T) {
		t.Parallel()
		all.runOn(t, newNetworks, choose(chosen, parallelAcross), choose(chosen, serialAcross))
	})
	t.Run("documents", func(t *testing.T) {
		t.Parallel()
		for _, d := range documents {
			if chosen.MatchString(d.story) {
				t.Run(d.story, func(t *testing.T) { d.run(t, all) })
			}
		}
	})
}

func (s *summary) runOn(t *testing.T, start func(*testing.T) *stage, parallel, serial []story) {
	if len(parallel)+len(serial) == 0 {
		return
	}
	st := start(t)
	t.Run("parallel", func(t *testing.T) {
		for _, story := range parallel {
			t.Run(story.name, func(t *testing.T) {
				t.Parallel()
				s.run(t, st, story)
			})
		}
	})
	for _, story := range serial {
		t.Run(story.name, func(t *testing.T) { s.run(t, st, story) })
	}
}

func choose(name *regexp.Regexp, from []story) []story {
	return slices.DeleteFunc(slices.Clone(from), func(s story) bool { return !name.MatchString(s.name) })
}
