// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// Starting API servers takes longer than most of the tests. So these tests have parts that share a hub and clusters. After each part
// the clusters are restored to their earlier state.

// TestVerbs runs the verbs: clusters join, are read and changed, and leave.
func TestVerbs(t *testing.T) { //nolint:tparallel // its parts follow one another
	t.Parallel()
	w := start(t, "east", "west")
	w.testInitHub(t)
	w.share(t, map[string]func(*testing.T){
		"life of a member":  w.testLifeOfAMember,
		"DNS":               w.testDNS,
		"checks of join":    w.testChecksOfJoin,
		"leave interrupted": w.testLeaveInterrupted,
		"survey":            w.testSurvey,
		"invitation":        w.testInvitation,
	})
}

// TestCredentials changes the credentials of a member and of the hub. An agent reads its token once a minute, so most of this test
// is waiting, beside the other tests.
func TestCredentials(t *testing.T) { //nolint:tparallel // its parts follow one another
	t.Parallel()
	w := start(t, "east")
	w.must(t, "init-hub --context hub")
	w.share(t, map[string]func(*testing.T){
		"join again": w.testJoinAgain,
	})
	t.Run("hub certificate rotated", w.testHubCertificateRotated) // it disconnects the hub's controllers
}

// share runs parts, in any order.
func (w *world) share(t *testing.T, parts map[string]func(*testing.T)) {
	t.Helper()
	var before []*membership.Snapshot
	for _, cluster := range w.Clusters() {
		s, err := membership.TakeSnapshot(t.Context(), cluster)
		lab.Must(t, err)
		before = append(before, s)
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() {
				var restoring errgroup.Group
				for _, s := range before {
					restoring.Go(func() error { return s.Restore(context.WithoutCancel(t.Context())) })
				}
				lab.Must(t, restoring.Wait())
			})
			part(t)
		})
	}
}

// testChecksOfJoin makes the checks fail that need API servers. A join that is refused changes nothing. The other checks are
// tested in cmd/kubectl-clusterset/cli.
//
// spec: K1, K2
func (w *world) testChecksOfJoin(t *testing.T) {
	join := func(more string) string { return w.join("east", more) }
	before := w.traces(t, "hub", "east")
	w.refused(t, join(""), cli.ExitFailed, "the pod CIDRs cannot be found in this cluster: pass --pod-cidrs")
	w.refused(t, join("--pod-cidrs 10.101.0.0/24"), cli.ExitFailed, "pod CIDR 10.101.0.0/24 overlap with service CIDR 10.101.0.0/16 of this cluster itself", "--allow-overlap")
	w.refused(t, "join --context east --hub-context hub --cluster-id east --pod-cidrs 10.1.0.0/16", cli.ExitFailed, "means another machine inside this cluster's pods: pass --hub-server")
	w.refused(t, join("--pod-cidrs 10.1.0.0/16 --hub-server http://hub"), cli.ExitFailed, "pass --hub-server https://")
	w.refused(t, join("--pod-cidrs 10.1.0.0/16 --hub-ca /dev/null"), cli.ExitFailed, "no certificate authority", "pass --hub-ca")
	// No node runs the pod that connects to the hub.
	w.refused(t, join("--pod-cidrs 10.1.0.0/16 --check-timeout 1s"), cli.ExitFailed, "has not ended within 1s", "--agent-image", "--check-from-inside=false")
	stop := startNode(t, w.Cluster("east"), w.agent)
	w.refused(t, join("--pod-cidrs 10.1.0.0/16 --hub-server https://127.0.0.1:1"), cli.ExitFailed, "do not reach the hub at https://127.0.0.1:1", "connection refused", "pass --hub-server")
	ca := filepath.Join(t.TempDir(), "ca.crt")
	lab.Must(t, os.WriteFile(ca, w.Cluster("east").Config().CAData, 0o600))
	w.refused(t, join("--pod-cidrs 10.1.0.0/16 --hub-ca "+ca), cli.ExitFailed, "do not reach the hub", "unknown authority", "--hub-ca")
	stop()
	lab.Equal(t, "joins that were refused have changed something", before, w.traces(t, "hub", "east"))

	w.must(t, w.join("west", "--pod-cidrs 10.2.0.0/16 --node-cidrs 192.0.2.0/24 --check-from-inside=false --wait 0"))
	if out := w.must(t, w.join("west", "--dry-run")); !strings.Contains(out, "pod CIDRs 10.2.0.0/16 (as on the hub already)") ||
		!strings.Contains(out, "service CIDRs 10.102.0.0/16, fd00:10:102::/112 (") {
		t.Errorf("joined again without ranges:\n%s", out)
	}
	w.refused(t, join("--pod-cidrs 10.2.128.0/17"), cli.ExitFailed, "pod CIDR 10.2.128.0/17 overlap with pod CIDR 10.2.0.0/16 of member west", "--allow-overlap")
	w.must(t, join("--pod-cidrs 10.2.128.0/17 --allow-overlap --dry-run"))
	w.refused(t, strings.Replace(join("--pod-cidrs 10.1.0.0/16"), "--cluster-id east", "--cluster-id west", 1), cli.ExitFailed, `cluster ID "west" is another cluster's`, "pass another --cluster-id", "leave --from hub")

	member := &hubv1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: "member-west", Name: hubv1alpha1.MemberName}}
	w.edit(t, "hub", member, func() { member.Spec.Suspended = true })
	w.refused(t, w.join("west", ""), cli.ExitFailed, `cluster ID "west" is suspended on the hub`,
		`kubectl --namespace member-west patch member/member --type merge --patch '{"spec":{"suspended":false}}'`)
	w.edit(t, "hub", member, func() { member.Spec.Suspended = false })
	w.must(t, w.join("west", "--check-from-inside=false --wait 0"))
}
