// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"os"
	"regexp"
	"runtime"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tombolo-mcs/tombolo/e2e/framework/complete"
)

// variants are the clustersets that stories run in: both installers, both DNS plugins, a separate hub and one that is a
// member too. All stories run in the first; in the others, only those for which it makes a difference, unless VARIANT names them.
var variants = []complete.Variant{
	{Name: "command-plugin", Installer: complete.ByCommand, DNS: complete.OurPlugin},
	{Name: "kustomize-coredns", Installer: complete.ByKustomize, DNS: complete.CoreDNSPlugin, HubAmongMembers: true},
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	m.Run()
}

// story is one of a user's.
type story struct {
	name string
	run  func(*scene)
	in   scope
}

// scope says in which variants a story runs.
type scope int

const (
	firstVariant scope = iota
	allVariants        // the installer, the DNS plugin or the place of the hub matters
)

// parallel are the stories that keep to their own namespace: several run at a time, the longest first.
var parallel = []story{
	{"internal traffic policy Local stays on the node", localTrafficStaysLocal, firstVariant},
	{"pods of a StatefulSet have names of their own", statefulPodsHaveNamesOfTheirOwn, allVariants},
	{"what is not exported stays private", whatIsNotExportedStaysPrivate, firstVariant},
	{"an exported service answers in every cluster", exportedServiceAnswersEverywhere, allVariants},
	{"two exporters serve together, and one serves on", twoExporters, firstVariant},
	{"each port reaches the clusters that expose it", portsThatDisagree, firstVariant},
	{"session affinity holds over all clusters", clientsStick, firstVariant},
	{"traffic prefers its own zone", clientsPreferTheirZone, firstVariant},
	{"pods on the machines network are reached", podsOnTheMachinesNetwork, firstVariant},
	{"endpoints that a user writes are reached", slicesOfTheUser, firstVariant},
	{"NodePort and LoadBalancer are exported and stay as they are", servicesForTheOutside, firstVariant},
	{"a headless service is its ready pods in all clusters", headlessServiceIsItsReadyPods, allVariants},
	{"both DNS servers differ as documented", dnsServersDifferAsDocumented, allVariants},
	{"an invalid export is refused until it is valid", invalidExports, firstVariant},
	{"a service is imported where its namespace is", namespaceOfOneCluster, firstVariant},
	{"a service is back with its namespace", namespaceMadeAgain, firstVariant},
}

// serial are the stories that disturb the clusters, or measure: they run one after the other, in this order.
var serial = []story{
	{"a rolling update loses no request", rollingUpdateLosesNoRequest, firstVariant},
	{"agents restart unnoticed", agentsRestartUnnoticed, firstVariant},
	{"the hub restarts unnoticed", hubRestartsUnnoticed, allVariants},
	{"an import that is deleted while the hub is unreachable keeps its connections", importDeletedWhileHubIsUnreachable, firstVariant},
	{"DNS restarts unnoticed", dnsRestartsUnnoticed, allVariants},
	{"a dead member is left out", deadMemberIsLeftOut, firstVariant},
	{"a member joins and leaves", aMemberJoinsThenLeaves, allVariants},
}

// TestStories runs the stories in the variants, and the quickstart in one of its own. STORY and VARIANT in the environment,
// regular expressions, choose some by their names.
//
// spec: E1, E2, E3, E4, E5, E6, E8, C1, C2, C3, C4, C5, C7, R1, R2, R6, I1, I2, I3, D1, D6, D7, D9, N2, N3, N5, N6, N9
func TestStories(t *testing.T) {
	if os.Getenv("TOMBOLO_E2E") == "" || runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("complete clusters need Linux and root, and minutes: make e2e")
	}
	chosen, variant := regexp.MustCompile(os.Getenv("STORY")), regexp.MustCompile(os.Getenv("VARIANT"))
	var all summary
	t.Cleanup(func() { all.print(t) })
	for i, v := range variants {
		in := firstVariant
		if i > 0 && os.Getenv("VARIANT") == "" {
			in = allVariants
		}
		parallel, serial := choose(chosen, in, parallel), choose(chosen, in, serial)
		if !variant.MatchString(v.Name) || len(parallel)+len(serial) == 0 {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			st := newStage(t, v)
			t.Run("parallel", func(t *testing.T) {
				for _, s := range parallel {
					t.Run(s.name, func(t *testing.T) {
						t.Parallel()
						all.run(t, st, s)
					})
				}
			})
			for _, s := range serial {
				t.Run(s.name, func(t *testing.T) { all.run(t, st, s) })
			}
		})
	}
	if variant.MatchString(quickstart.Name) && chosen.MatchString(quickstartStory) {
		t.Run(quickstart.Name, func(t *testing.T) {
			st := startStage(t, complete.Options{Variant: quickstart, Late: []string{"east", "west"}})
			if err := st.LoadConformanceImages(t.Context()); err != nil { // the document's pods run one of them
				t.Fatal(err)
			}
			t.Run(quickstartStory, func(t *testing.T) {
				defer all.time(t, st)()
				newcomerFollowsTheQuickstart(t, st)
			})
		})
	}
}

// choose returns the stories of such names that run in so many variants at least.
func choose(name *regexp.Regexp, in scope, from []story) []story {
	return slices.DeleteFunc(slices.Clone(from), func(s story) bool { return !name.MatchString(s.name) || s.in < in })
}
