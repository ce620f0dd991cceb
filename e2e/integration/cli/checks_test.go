// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

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
