// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// way is a way of installing, as docs/install.md describes it.
type way string

const (
	byCommand   way = "the command"
	byKustomize way = "kustomize"
	byHelm      way = "Helm"
)

// ending is what happened to an installation before the next.
type ending string

const (
	running          ending = "had installed, and still runs"
	left             ending = "had installed, and leave has deleted"
	leftWithoutHub   ending = "had installed, and leave --from member has deleted"
	uninstalled      ending = "had installed and uninstalled"
	namespaceDeleted ending = "had installed, and whose namespace was deleted"
)

// ofMember returns what can happen to the installation of a member. The command uninstalls with leave.
func (w way) ofMember() []ending {
	all := []ending{running, left, uninstalled, namespaceDeleted}
	if w == byCommand {
		all[2] = leftWithoutHub
	}
	return all
}

// cell is an installation by one way over what another one has left or installed.
type cell struct {
	from   way
	ending ending
	to     way
}

func (c cell) String() string {
	return fmt.Sprintf("installing by %s over what %s %s", c.to, c.from, c.ending)
}

// ofHub returns what can happen to the installation of a hub.
func (w way) ofHub() []ending { return []ending{running, uninstalled} }

// allInstallations reports whether a test must have each installation: "make installations-check".
func allInstallations() bool { return os.Getenv("INSTALLATIONS") == "all" }

// cells returns cells in an order in which each begins where the one before it ends: an Eulerian circuit. These are all if the variable
// INSTALLATIONS is "all", and otherwise one for each way of installing, over what another one had installed and what was deleted in the usual way.
func cells(endings func(way) []ending) []cell {
	ways, others := []way{byCommand, byKustomize, byHelm}, 1
	if allInstallations() {
		others = len(ways)
	} else {
		all := endings
		endings = func(w way) []ending { return all(w)[1:2] }
	}
	open := map[way][]cell{}
	for n := range ways {
		for other := range others {
			from, to := ways[(n+1)%len(ways)], ways[(n+len(ways)-other)%len(ways)]
			for _, ending := range endings(from) {
				if from != to || ending != running { // others test repeated installations
					open[from] = append(open[from], cell{from, ending, to})
				}
			}
		}
	}
	var circuit []cell
	var visit func(from way)
	visit = func(from way) {
		for len(open[from]) > 0 {
			next := open[from][0]
			open[from] = open[from][1:]
			visit(next.to)
			circuit = append(circuit, next)
		}
	}
	visit(byCommand)
	slices.Reverse(circuit)
	return circuit
}

// TestInstallations: each way of installing works on what each other way has left or installed. Then all objects are there and up to date,
// the agent renews its heartbeat, and a change of an export reaches the hub.
//
// spec: K1, K3
func TestInstallations(t *testing.T) { //nolint:tparallel // each cell begins where the one before it ends
	t.Parallel()
	w := start(t, "east")
	lab.TouchDeletedCRDs(t, w.client(t, "east"))
	i := &installations{world: w, shell: w.document(t)}
	i.sh(t, "kubectl clusterset init-hub --context hub")
	lab.Must(t, w.Cluster("hub").RestartControllers(t.Context())) // their quotas know new kinds after up to five minutes otherwise
	w.create(t, "east", framework.Service(exported, framework.Port("web", 9000)))
	before := w.traces(t, "hub", "east")
	i.snapshot(t, "hub", "east")
	startNode(t, w.Cluster("east"), w.agent)
	i.walk(t, cells(way.ofMember), i.end, i.install, i.works)
	t.Run("a namespace that is being deleted", i.testTerminating)
	t.Run("Helm after kubectl", func(t *testing.T) {
		i.testHelmAfterKubectl(t)
		lab.Equal(t, "what leave leaves after helm uninstall", before, w.traces(t, "hub", "east"))
	})
}

// walk takes the steps of each cell: the installation by the first way ends, and the second one installs and must work. It prints a table.
func (i *installations) walk(t *testing.T, cells []cell, end func(*testing.T, way, ending), install func(*testing.T, cell), works func(*testing.T)) {
	t.Helper()
	var table strings.Builder
	var installed way
	for _, c := range cells {
		begin, result := time.Now(), "omitted"
		t.Run(c.String(), func(t *testing.T) {
			result = "FAILED"
			if installed != c.from { // the cell before it failed, or was not selected
				i.restore(t)
				install(t, cell{to: c.from})
				works(t)
			}
			installed = ""
			end(t, c.from, c.ending)
			install(t, c)
			works(t)
			if !t.Failed() {
				installed, result = c.to, "works"
			}
		})
		fmt.Fprintf(&table, "%-7s %5.1f s  %s\n", result, time.Since(begin).Seconds(), c)
	}
	t.Logf("installations:\n%s", table.String())
}

// snapshot stores the state of clusters before the first installation.
func (i *installations) snapshot(t *testing.T, clusters ...string) {
	t.Helper()
	for _, name := range clusters {
		s, err := membership.TakeSnapshot(t.Context(), i.Cluster(name))
		lab.Must(t, err)
		i.before = append(i.before, s)
	}
}

// restore deletes what has been installed.
func (i *installations) restore(t *testing.T) {
	t.Helper()
	for _, s := range i.before {
		lab.Must(t, s.Restore(t.Context()))
	}
}

// TestHubInstallations: the same for a hub. Tokens are for the hub's audiences only if the command has installed it.
func TestHubInstallations(t *testing.T) { //nolint:tparallel // each cell begins where the one before it ends
	t.Parallel()
	w := start(t)
	lab.TouchDeletedCRDs(t, w.client(t, "hub"))
	i := &installations{world: w, shell: w.document(t)}
	i.snapshot(t, "hub")
	objects := desiredHub(t)
	end := func(t *testing.T, by way, how ending) {
		t.Helper()
		switch {
		case how == running:
		case by == byHelm:
			i.sh(t, "helm --kube-context hub uninstall tombolo-hub")
		default:
			i.sh(t, i.shell.block(t, "Leave", "delete -k manifests/hub"))
		}
	}
	i.walk(t, cells(way.ofHub), end, i.installHub, func(t *testing.T) {
		t.Helper()
		for _, o := range objects {
			i.isUpToDate(t, "hub", o.DeepCopy())
		}
	})
}
