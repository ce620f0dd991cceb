// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/e2e/framework/complete"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// TestUpgrade: the version in the folder UPGRADE_FROM is installed, by the command in a and b, which are in separate networks, and by Helm in
// c, which is in the network of a. Under load through both kinds of network the clusterset is upgraded to this version, the hub first and the
// members one by one, and back, the hub last. No request fails; after the upgrade, what users have set is as it was; after the way back, each
// cluster has the objects that it had ("make upgrade-check").
func TestUpgrade(t *testing.T) {
	lab.NeedComplete(t)
	from := os.Getenv("UPGRADE_FROM")
	if from == "" {
		t.Skip("UPGRADE_FROM is not set: make upgrade-check builds an earlier version, and sets it")
	}
	s := newScene(t, startStage(t, complete.Options{
		Members: []string{"a", "b", "c"}, Networks: separateNetworks, Before: from,
		Installations: map[string]complete.Installation{"c": {Installer: complete.ByHelm, DNS: complete.OurPlugin}},
	}))
	s.openMembers()
	for _, p := range s.members() {
		p.offer("web-of-"+p.cluster.Name, 2)
	}
	var loads []*load
	for to, sources := range map[string][]string{"a": {"b", "c"}, "b": {"a"}, "c": {"a"}} {
		for _, source := range sources {
			p, name := s.in(to), s.name("web-of-"+source)
			p.awaitImport("web-of-"+source, source)
			p.awaitAnyAnswer("tcp4", name, 80)
			loads = append(loads, p.load("tcp4", name, 80, 20))
		}
	}
	for _, set := range settings {
		lab.Must(s, s.kubectl("a", set.command...))
	}
	before := s.inventory()

	s.UseThis()
	lab.Must(s, s.InstallHub(s.Context()))
	s.upgradeMembers()
	s.sameSettings()

	s.UseBefore()
	s.upgradeMembers("--force-conflicts") // the earlier version takes what others have set for conflicts
	lab.Must(s, s.InstallHub(s.Context()))
	s.awaitHealth()
	after := s.inventory()
	for cluster, objects := range before {
		for _, o := range slices.Sorted(maps.Keys(objects)) {
			if !after[cluster][o] {
				s.Errorf("cluster %s: after the way back, %s is missing", cluster, o)
			}
			delete(after[cluster], o)
		}
		maps.DeleteFunc(after[cluster], func(o string, _ bool) bool { // as operations.md says
			return strings.HasPrefix(o, "validatingadmissionpolic")
		})
		if left := slices.Sorted(maps.Keys(after[cluster])); len(left) > 0 {
			s.Errorf("cluster %s: after the way back, these are left of the newer version: %s", cluster, strings.Join(left, ", "))
		}
	}
	for _, l := range loads {
		total := l.endClean()
		s.Logf("from cluster %s: %s: %d requests, %d failed", l.place.cluster.Name, l.what, total.Requests, total.Failed)
	}
}

// upgradeMembers brings the members to the version that is in use, one by one. Flags are added to those of the command upgrade.
func (s *scene) upgradeMembers(flags ...string) {
	s.Helper()
	for _, p := range s.members() {
		lab.Must(s, s.Upgrade(s.Context(), p.cluster.Name, flags...))
		s.awaitHealth()
	}
}

// settings are what operations.md has users change in a member: a kubectl command, and the path of the value with what it is then.
var settings = []struct {
	command           []string
	object, path, set string
}{
	{
		[]string{"-n", system, "set", "resources", "deployment/" + agent, "--limits=memory=777Mi"},
		"deployment/" + agent, "{.spec.template.spec.containers[0].resources.limits.memory}", "777Mi",
	},
	{
		[]string{"-n", system, "scale", "deployment/tombolo-dns", "--replicas=3"},
		"deployment/tombolo-dns", "{.spec.replicas}", "3",
	},
}

func (s *scene) sameSettings() {
	s.Helper()
	for _, set := range settings {
		got, err := s.Kubectl(s.Context(), "", "--context", "a", "-n", system, "get", set.object, "-o", "jsonpath="+set.path)
		lab.Must(s, err)
		if got != set.set {
			s.Errorf("%s %s is %q after the upgrade, want %q", set.object, set.path, got, set.set)
		}
	}
}

// inventory returns what an installation consists of, by clusters: kinds and names.
func (s *scene) inventory() map[string]map[string]bool {
	s.Helper()
	const kinds = "namespaces,deployments,services,serviceaccounts,configmaps,roles,rolebindings,clusterroles,clusterrolebindings," +
		"validatingadmissionpolicies,validatingadmissionpolicybindings,networkpolicies,poddisruptionbudgets,resourcequotas," +
		"customresourcedefinitions,prioritylevelconfigurations,flowschemas,priorityclasses"
	found := map[string]map[string]bool{}
	for _, c := range s.Clusters() {
		out, err := s.Kubectl(s.Context(), "", "--context", c.Name, "get", kinds, "-A", "-l", "app.kubernetes.io/part-of=tombolo", "-o", "name")
		lab.Must(s, err)
		found[c.Name] = map[string]bool{}
		for _, o := range strings.Fields(out) {
			found[c.Name][o] = true
		}
		if len(found[c.Name]) == 0 {
			s.Fatalf("cluster %s has no object of Tombolo", c.Name)
		}
	}
	return found
}

func (s *scene) kubectl(cluster string, args ...string) error {
	_, err := s.Kubectl(s.Context(), "", append([]string{"--context", cluster}, args...)...)
	return err
}
