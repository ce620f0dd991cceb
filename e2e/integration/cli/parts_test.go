// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// Starting API servers takes longer than most of the tests. So these tests have parts that share a hub and clusters. After each part
// the clusters are restored to their earlier state.

// TestVerbs runs the verbs: clusters join, are changed, and leave.
func TestVerbs(t *testing.T) { //nolint:tparallel // its parts follow one another
	t.Parallel()
	w := start(t, "east", "west")
	w.testInitHub(t)
	w.share(t, map[string]func(*testing.T){
		"life of a member":  w.testLifeOfAMember,
		"DNS":               w.testDNS,
		"checks of join":    w.testChecksOfJoin,
		"leave interrupted": w.testLeaveInterrupted,
		"invitation":        w.testInvitation,
	})
}

// TestCredentials changes the credentials of a member and of the hub. An agent reads its token once a minute, so most of this test
// is waiting, beside the other tests.
func TestCredentials(t *testing.T) { //nolint:tparallel // its parts follow one another
	t.Parallel()
	w := start(t, "east")
	w.initHub(t, "hub")
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
// tested in cmd/kubectl-clusterset/internal.
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

// testHubCertificateRotated: the hub gets another certificate authority, as docs/install.md describes. The agent continues without a
// restart.
func (w *world) testHubCertificateRotated(t *testing.T) {
	startNode(t, w.Cluster("east"), w.agent)
	w.must(t, w.join("east", "--pod-cidrs 10.1.0.0/16"))
	hub := w.Cluster("hub")
	next, err := lab.NewCertificate()
	lab.Must(t, err)
	both := filepath.Join(t.TempDir(), "both.pem")
	lab.Must(t, os.WriteFile(both, slices.Concat(hub.Config().CAData, next.PEM), 0o600))
	w.must(t, w.join("east", "--hub-ca "+both))
	lab.Must(t, hub.Serve(t.Context(), next))
	w.connect(t)
	w.beats(t, "hub")
	w.unchanged(t, w.join("east", "")) // URL and certificate authority stay; it waits for a heartbeat, too
	alone := filepath.Join(t.TempDir(), "new.pem")
	lab.Must(t, os.WriteFile(alone, next.PEM, 0o600))
	w.must(t, w.join("east", "--hub-ca "+alone)) // without the old one
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-hub"}}
	w.get(t, "east", secret)
	if !bytes.Equal(secret.Data["ca.crt"], next.PEM) {
		t.Error("the agent still trusts the old certificate authority")
	}
	w.beats(t, "hub")
}

// testJoinAgain: a member whose ServiceAccount on the hub was deleted joins again and gets a new token. With another URL of the
// hub, its agent restarts, and the URL stays.
func (w *world) testJoinAgain(t *testing.T) {
	startNode(t, w.Cluster("east"), w.agent)
	w.must(t, w.join("east", "--pod-cidrs 10.1.0.0/16"))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "member-east", Name: "tombolo-agent"}}
	lab.Must(t, w.client(t, "hub").Delete(t.Context(), account))
	if out := w.must(t, w.join("east", "")); !strings.Contains(out, "secret/tombolo-hub configured\n") {
		t.Errorf("the token of a deleted account is kept:\n%s", out)
	}
	w.unchanged(t, w.join("east", ""))

	before := w.deployment(t, "tombolo-agent").Spec.Template
	other := strings.Replace(w.Cluster("hub").Config().Host, "127.0.0.1", "localhost", 1)
	w.must(t, w.join("east", "--hub-server "+other)) // it waits for a heartbeat through the other URL
	if reflect.DeepEqual(before, w.deployment(t, "tombolo-agent").Spec.Template) {
		t.Error("the agent was not restarted, so it uses the old URL")
	}
	out := w.unchanged(t, "join --context east --hub-context hub") // not the kubeconfig's URL, which would be refused
	if !strings.Contains(out, "agents will reach the hub at "+other+" (as before)") {
		t.Errorf("without --hub-server:\n%s", out)
	}
	w.unchanged(t, "upgrade --context east")
}

// beats returns when the agent of east has renewed its heartbeat on a hub twice.
func (w *world) beats(t *testing.T, on string) {
	t.Helper()
	beat := &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: "member-east", Name: hubv1alpha1.HeartbeatName}}
	w.get(t, on, beat)
	seen := map[string]bool{beat.ResourceVersion: true}
	hub := w.client(t, on)
	lab.Holds(t, waitLimit, "heartbeat", func() bool {
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(beat), beat); err == nil {
			seen[beat.ResourceVersion] = true
		}
		return len(seen) > 2
	})
}
