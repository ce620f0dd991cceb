// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/config/crd"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// refused runs a command that must fail with an exit code, and say a text; the text ends with what to do.
func (w *world) refused(t *testing.T, command string, code int, texts ...string) {
	t.Helper()
	out, got := w.run(t, command)
	if got != code {
		t.Errorf("$ kubectl clusterset %s\n%sexit code %d, want %d", command, out, got, code)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("$ kubectl clusterset %s\n%sdoes not say %q", command, out, text)
		}
	}
}

// TestCommandLine: what is wrong with the command line is told before anything is looked at.
func TestCommandLine(t *testing.T) {
	w := &world{kubeconfig: filepath.Join(t.TempDir(), "none")}
	for command, text := range map[string]string{
		"jion":                      "unknown command",
		"join --cluster-idd a":      "unknown flag",
		"join extra":                "unknown command",
		"join":                      "--hub-context",
		"join --profile huge":       "agent, production, quickstart",
		"join --pod-cidrs 10.1.0.0": `--pod-cidrs: "10.1.0.0" is no CIDR such as`,
		"join --node-cidrs 10.1/16": `--node-cidrs: "10.1/16" is no CIDR such as`,
		"join --service-cidrs a,b":  `--service-cidrs: "a" is no CIDR such as`,
		"join --hub-ca /none":       "--hub-ca: open /none",
		"dns --by magic":            "--by=magic: must be tombolo, kubernetes or none",
		"dns --configmap coredns":   "<namespace>/<name>",
		"leave":                     "--from",
		"leave --from nowhere":      "both, hub or member",
		"leave --from hub":          "--cluster-id",
		"upgrade --profile nothing": "agent, production, quickstart",
		"trace":                     "the argument NAMESPACE/SERVICE is missing: kubectl clusterset trace NAMESPACE/SERVICE",
		"explain":                   "the argument NAMESPACE/SERVICE is missing: kubectl clusterset explain NAMESPACE/SERVICE",
		"trace shop/web cart":       "2 arguments are too many: kubectl clusterset trace NAMESPACE/SERVICE",
		"diff shop/web shop/cart":   "2 arguments are too many: kubectl clusterset diff [NAMESPACE/SERVICE]",
		"status --context ghost":    "--context=ghost: this command reads the whole clusterset; pass --contexts for the members to read, and --hub-context for the hub",
		"trace a/b --context ghost": "--context=ghost: this command reads the whole clusterset; pass --contexts",
		"trace shop/web -n other":   "shop/web is in namespace shop, and --namespace=other: leave out one of the two",
		"diff shop/web -n other":    "shop/web is in namespace shop, and --namespace=other: leave out one of the two",
	} {
		w.refused(t, command, cli.ExitUsage, text)
	}
	w.must(t, "join --help")
	if out := w.must(t, "completion bash"); !strings.Contains(out, "bash completion") {
		t.Error("no completion")
	}
}

// testChecksOfJoin provokes each check and reads what it says. Nothing is changed by a join that is refused.
//
// spec: K1, K2
func (w *world) testChecksOfJoin(t *testing.T) {
	join := func(more string) string { return w.join("east", more) }
	before := w.traces(t, "hub", "east")

	w.refused(t, strings.Replace(join(""), "--cluster-id east", "--cluster-id Not_A_Label", 1), cli.ExitFailed, "is no DNS label", "choose another")
	w.refused(t, strings.Replace(join(""), "--cluster-id east", "", 1), cli.ExitFailed, "the cluster ID is empty", "pass --cluster-id")
	w.refused(t, strings.Replace(join(""), "--cluster-id east", "--cluster-id "+strings.Repeat("x", 57), 1), cli.ExitFailed, "57 characters", "shorter")
	w.refused(t, join(""), cli.ExitFailed, "the pod CIDRs cannot be found in this cluster: pass --pod-cidrs")
	w.refused(t, join("--pod-cidrs 10.101.0.0/24"), cli.ExitFailed, "pod CIDR 10.101.0.0/24 overlap with service CIDR 10.101.0.0/16 of this cluster itself", "--allow-overlap")
	w.refused(t, "join --context east --hub-context hub --cluster-id east --pod-cidrs 10.1.0.0/16", cli.ExitFailed, "means another machine inside this cluster's pods: pass --hub-server")
	w.refused(t, join("--pod-cidrs 10.1.0.0/16 --hub-server http://hub"), cli.ExitFailed, "pass --hub-server https://")
	w.refused(t, join("--pod-cidrs 10.1.0.0/16 --hub-ca /dev/null"), cli.ExitFailed, "no certificate authority", "pass --hub-ca")
	// No node runs the pod that looks from inside.
	w.refused(t, join("--pod-cidrs 10.1.0.0/16 --check-timeout 1s"), cli.ExitFailed, "has not ended within 1s", "--agent-image", "--check-from-inside=false")
	stop := startNode(t, w.Cluster("east"), w.agent)
	w.refused(t, join("--pod-cidrs 10.1.0.0/16 --hub-server https://127.0.0.1:1"), cli.ExitFailed, "do not reach the hub at https://127.0.0.1:1", "connection refused", "pass --hub-server")
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, w.Cluster("east").Config().CAData, 0o600); err != nil {
		t.Fatal(err)
	}
	w.refused(t, join("--pod-cidrs 10.1.0.0/16 --hub-ca "+ca), cli.ExitFailed, "do not reach the hub", "unknown authority", "--hub-ca")
	stop()
	if diff := cmp.Diff(before, w.traces(t, "hub", "east")); diff != "" {
		t.Errorf("joins that were refused have left something (-before +after):\n%s", diff)
	}

	w.must(t, w.join("west", "--pod-cidrs 10.2.0.0/16 --node-cidrs 192.0.2.0/24 --check-from-inside=false --wait 0"))
	w.refused(t, join("--pod-cidrs 10.2.128.0/17"), cli.ExitFailed, "pod CIDR 10.2.128.0/17 overlap with pod CIDR 10.2.0.0/16 of member west", "--allow-overlap")
	w.refused(t, join("--pod-cidrs 192.0.2.0/25"), cli.ExitFailed, "overlap with node CIDR 192.0.2.0/24 of member west")
	w.must(t, join("--pod-cidrs 10.2.128.0/17 --allow-overlap --dry-run"))
	w.refused(t, strings.Replace(join("--pod-cidrs 10.1.0.0/16"), "--cluster-id east", "--cluster-id west", 1), cli.ExitFailed, `cluster ID "west" is another cluster's`, "pass another --cluster-id", "leave --from hub")
	w.suspend(t, "west", true)
	w.refused(t, w.join("west", ""), cli.ExitFailed, `cluster ID "west" is suspended on the hub`,
		`kubectl --namespace member-west patch member/member --type merge --patch '{"spec":{"suspended":false}}'`)
	w.suspend(t, "west", false)
	w.must(t, w.join("west", "--check-from-inside=false --wait 0"))
	testDeclared(t, w, join)
	testDefinitions(t, w)
}

// suspend has an administrator suspend a member, or not any more.
func (w *world) suspend(t *testing.T, id clusterset.ClusterID, suspended bool) {
	t.Helper()
	member := &hubv1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: hubv1alpha1.MemberName}}
	w.get(t, "hub", member)
	member.Spec.Suspended = suspended
	w.update(t, "hub", member)
}

// testDeclared: what the cluster says of itself counts, and is not changed.
func testDeclared(t *testing.T, w *world, join func(string) string) {
	t.Helper()
	if err := membership.InstallCRDs(t.Context(), w.Cluster("east")); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{aboutv1beta1.ClusterIDProperty: "orient", aboutv1beta1.ClusterSetProperty: "others"} {
		w.create(t, "east", &aboutv1beta1.ClusterProperty{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: aboutv1beta1.ClusterPropertySpec{Value: value}})
	}
	w.refused(t, join("--pod-cidrs 10.1.0.0/16"), cli.ExitFailed, `this cluster calls itself "orient"`, "leave out --cluster-id")
	w.refused(t, strings.Replace(join("--pod-cidrs 10.1.0.0/16 --clusterset mine"), "--cluster-id east", "", 1), cli.ExitFailed, `a member of clusterset "others"`, "leave that first")
	if out := w.must(t, strings.Replace(join("--pod-cidrs 10.1.0.0/16 --dry-run"), "--cluster-id east", "", 1)); !strings.Contains(out, `cluster ID "orient" is free`) {
		t.Errorf("with the ID that the cluster has already:\n%s", out)
	}
}

// testDefinitions: the kinds of the Multi-Cluster Services API are never downgraded, and never replaced unasked.
func testDefinitions(t *testing.T, w *world) {
	t.Helper()
	join := func(more string) string {
		return strings.Replace(w.join("east", "--pod-cidrs 10.1.0.0/16 "+more), "--cluster-id east", "", 1)
	}
	newer := strings.ReplaceAll(string(crd.ServiceExportCRD), "v0.5.2", "v9.0.0")
	w.apply(t, "east", newer)
	if out := w.must(t, join("--dry-run")); !strings.Contains(out, "serviceexports.multicluster.x-k8s.io is there (v9.0.0) and stays as it is") {
		t.Errorf("with a newer kind:\n%s", out)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "serviceexports.multicluster.x-k8s.io"}}
	w.get(t, "east", definition)
	for i := range definition.Spec.Versions {
		if definition.Spec.Versions[i].Name == "v1beta1" {
			definition.Spec.Versions[i].Served = false
		}
	}
	definition.Labels = nil // as it was before there were labels
	w.update(t, "east", definition)
	w.refused(t, join(""), cli.ExitFailed, "does not serve v1beta1", "kubectl clusterset upgrade")
}

// testFoundRanges: the addresses are found wherever kinds of clusters tell them, and stay as they were when it joined.
func (w *world) testFoundRanges(t *testing.T) {
	dryRun := w.join("east", "--dry-run --node-cidrs 192.0.2.0/24")
	says := func(command, text string) {
		t.Helper()
		if out := w.must(t, command); !strings.Contains(out, text) {
			t.Errorf("$ kubectl clusterset %s\n%sdoes not say %q", command, out, text)
		}
	}
	for i, cidr := range []string{"10.1.0.0/24", "10.1.1.0/24"} {
		name := []string{"one", "two"}[i]
		w.create(t, "east", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDR: cidr, PodCIDRs: []string{cidr}}})
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		w.get(t, "east", n)
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: []string{"192.0.2.1", "2001:db8::1"}[i]}, {Type: corev1.NodeHostName, Address: name}}
		w.updateStatus(t, "east", n)
	}
	says(dryRun, "pod CIDRs 10.1.0.0/24, 10.1.1.0/24 (2 nodes' podCIDRs")
	says(w.join("east", "--dry-run"), "node CIDRs 192.0.2.1/32, 2001:db8::1/128 (the addresses of 2 nodes")
	w.create(t, "east", &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-controller-manager-one", Labels: map[string]string{"component": "kube-controller-manager"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none", Command: []string{"kube-controller-manager", "--cluster-cidr=10.1.0.0/16,fd00:1::/48"}}}},
	})
	says(dryRun, "pod CIDRs 10.1.0.0/16, fd00:1::/48 (flag --cluster-cidr of kube-controller-manager)")
	w.create(t, "east", &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"},
		Data:       map[string]string{"ClusterConfiguration": "networking:\n  podSubnet: 10.1.0.0/17\n  serviceSubnet: 10.96.0.0/16\n"},
	})
	says(dryRun, "pod CIDRs 10.1.0.0/17 (ConfigMap kube-system/kubeadm-config)")
	says(dryRun, "service CIDRs 10.101.0.0/16, fd00:10:101::/112 (the cluster's ServiceCIDRs)")
	says(w.join("east", "--dry-run --service-cidrs 10.200.0.0/16"), "service CIDRs 10.200.0.0/16 (--service-cidrs)")
	// What a member has stays, and what it shows beyond that is told.
	w.must(t, w.join("east", "--pod-cidrs 10.1.0.0/16 --node-cidrs 192.0.2.1/32 --check-from-inside=false --wait 0"))
	says(w.join("east", "--dry-run"), "pod CIDRs 10.1.0.0/16 (as on the hub already)")
	says(w.join("east", "--dry-run"), "node CIDRs 192.0.2.1/32 (as on the hub already)")
	says(w.join("east", "--dry-run"), "2001:db8::1/128 of this cluster are not on the hub, and are not added unasked: pass --node-cidrs 192.0.2.1/32,2001:db8::1/128")
	w.refused(t, w.join("east", "--node-cidrs "+strings.TrimSuffix(strings.Repeat("192.0.2.0/32,", 65), ",")), cli.ExitFailed, "65 node addresses are more than the 64")
}
