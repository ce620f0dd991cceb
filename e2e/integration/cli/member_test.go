// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// testInitHub makes a cluster a hub. A dry run changes nothing, and neither does a second run.
func (w *world) testInitHub(t *testing.T) {
	t.Helper()
	w.refused(t, w.join("east", "--pod-cidrs 10.1.0.0/16"), cli.ExitFailed, "is no hub yet", "init-hub")
	clean := w.traces(t, "hub", "east")
	w.must(t, "init-hub --context hub --dry-run")
	lab.Equal(t, "a dry run of init-hub", clean, w.traces(t, "hub", "east"))
	w.must(t, "init-hub --context hub")
	w.unchanged(t, "init-hub --context hub")
}

// testLifeOfAMember joins, joins again, upgrades and leaves a cluster. A dry run changes nothing, a second run changes nothing, and
// no secret is printed.
//
// spec: K1, K3
func (w *world) testLifeOfAMember(t *testing.T) {
	startNode(t, w.Cluster("east"), w.agent)
	isHub := w.traces(t, "hub", "east")

	join := w.join("east", "--pod-cidrs 10.1.0.0/16 --namespaces shop,default --trust-claimed-ages --agent-image example/agent:v1")
	w.refusedAsDevelopmentBuild(t)
	w.must(t, join+" --dry-run")
	printed := w.must(t, join+" --dry-run=client -o yaml")
	for _, text := range []string{"kind: Member\n", "kind: Deployment\n", "\n---\n# On the hub", "\n---\n# In this cluster", "secret/tombolo-hub created (dry run)\n"} {
		if !strings.Contains(printed, text) {
			t.Errorf("a dry run of the client prints no %q:\n%s", text, printed)
		}
	}
	if strings.Contains(printed, "kind: Secret\n") {
		t.Errorf("a dry run of the client prints a Secret:\n%s", printed)
	}
	lab.Equal(t, "dry runs of join", isHub, w.traces(t, "hub", "east"))
	out := w.must(t, join)
	w.unchanged(t, w.join("east", "")) // settings stay
	member := &hubv1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: "member-east", Name: "member"}}
	w.get(t, "hub", member)
	if diff := cmp.Diff([]hubv1alpha1.NamespaceName{"shop", "default"}, member.Spec.Namespaces); diff != "" || member.Spec.ClaimedAges != hubv1alpha1.ClaimedAgesTrusted {
		t.Errorf("joined again with fewer flags: ages %s, namespaces (-want +got):\n%s", member.Spec.ClaimedAges, diff)
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "member-east", Name: "tombolo"}}
	const services, endpoints, other = "count/publishedservices.hub.tombolo-mcs.io", "count/publishedendpoints.hub.tombolo-mcs.io", "count/secrets"
	w.edit(t, "hub", quota, func() { // by the hub's administrator
		quota.Spec.Hard[services], quota.Spec.Hard[other] = resource.MustParse("900"), resource.MustParse("20")
		delete(quota.Spec.Hard, endpoints)
	})
	w.must(t, w.join("east", "--wait 0 --force-conflicts"))
	w.must(t, w.join("east", "--trust-claimed-ages=false --wait 0"))
	w.get(t, "hub", quota)
	limits := map[string]string{}
	for name, limit := range quota.Spec.Hard {
		limits[string(name)] = limit.String()
	}
	lab.Equal(t, "the edited quota, after joining again", map[string]string{services: "900", endpoints: "1k", other: "20"}, limits)
	w.get(t, "hub", member)
	if member.Spec.ClaimedAges != hubv1alpha1.ClaimedAgesBounded {
		t.Errorf("claimed ages are still %s", member.Spec.ClaimedAges)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-hub"}}
	w.get(t, "east", secret)
	if token := string(secret.Data["token"]); token == "" || strings.Contains(out, token) {
		t.Error("there is no token, or it has been printed")
	}

	w.refused(t, "upgrade --context east", cli.ExitFailed, "the image example/agent:v1 of tombolo-agent is not from example.com/tombolo", "--image-registry", "--agent-image")
	w.must(t, "upgrade --context east --agent-image example/agent:v2")
	upgraded := map[string]string{"tombolo-agent": "example/agent:v2", "tombolo-dns": "example.com/tombolo/tombolo-dns:v0.0.0-test"}
	w.hasImages(t, "after the upgrade", upgraded)
	w.mirror(t, upgraded)
	w.gateways(t)
	w.autoExports(t)
	w.givenByHand(t)
	w.scaledByHand(t)
	w.must(t, w.join("east", installGateway+" --force-conflicts"))
	w.exports(t)
	w.copies(t)

	before := w.traces(t, "hub", "east")
	w.must(t, "leave --context east --hub-context hub --dry-run")
	lab.Equal(t, "a dry run of leave", before, w.traces(t, "hub", "east"))
	w.refused(t, "leave --context east --hub-context hub --cluster-id west", cli.ExitFailed, `this cluster calls itself "east", not "west"`)
	w.refused(t, "leave --context east --hub-context hub", cli.ExitFailed, "east leaves the clusterset", "nothing has been changed")
	lab.Equal(t, "a leave without an answer", before, w.traces(t, "hub", "east"))
	w.must(t, "leave --context east --hub-context hub --yes")
	lab.Equal(t, "after leaving", isHub, w.traces(t, "hub", "east"))
	w.claimsNothing(t)
	out = w.must(t, "leave --from member --context east --yes") // there is nothing left to do
	if want := "kubectl clusterset leave --from hub --cluster-id ID --hub-context HUB"; !strings.Contains(out, want) {
		t.Errorf("leave --from member does not say how to leave on the hub:\n%s", out)
	}
	w.must(t, "leave --from hub --cluster-id east --hub-context hub --yes")
}

// refusedAsDevelopmentBuild: a development build has no images, so it needs flags for those that do not run yet.
func (w *world) refusedAsDevelopmentBuild(t *testing.T) {
	t.Helper()
	released := w.build
	defer func() { w.build = released }()
	w.build = cli.Build{Version: "dev"}
	join := w.join("east", "--pod-cidrs 10.1.0.0/16 --wait 0")
	const why = "this command is a development build (dev), for which no images were published, so it cannot know their names: pass "
	w.refused(t, join, cli.ExitFailed, why+"--agent-image and --dns-image", "nothing has been changed")
	w.refused(t, join+" --agent-image example/agent:v1", cli.ExitFailed, why+"--dns-image with", "nothing has been changed")
	w.must(t, join+" --agent-image example/agent:v1 --profile agent --dry-run")
}

// mirror: with --image-registry, the images come from that registry, also after the next join and upgrade.
func (w *world) mirror(t *testing.T, before map[string]string) {
	t.Helper()
	w.must(t, w.join("east", "--image-registry mirror.example:5000/x"))
	w.hasImages(t, "from a mirror", map[string]string{
		"tombolo-agent": "mirror.example:5000/x/tombolo-agent:v0.0.0-test", "tombolo-dns": "mirror.example:5000/x/tombolo-dns:v0.0.0-test",
	})
	w.unchanged(t, w.join("east", ""))
	w.unchanged(t, "upgrade --context east")
	w.must(t, "upgrade --context east --image-registry example.com/tombolo --agent-image example/agent:v2")
	w.hasImages(t, "without the mirror", before)
}

// installGateway are the flags of join for gateways that others reach.
const installGateway = "--gateway --gateway-address 198.51.100.1:8443 --gateway-image example/gateway:v1"

// gateways: join installs gateways and says where others reach them, keeps their settings, and removes them.
//
// spec: G1, G4
func (w *world) gateways(t *testing.T) {
	t.Helper()
	if out := w.must(t, w.join("east", installGateway)); !strings.Contains(out, "other members reach the gateways at 198.51.100.1:8443") {
		t.Errorf("join says\n%s", out)
	}
	w.unchanged(t, w.join("east", ""))
	upgrade := "upgrade --context east --agent-image example/agent:v2"
	w.refused(t, upgrade, cli.ExitFailed, "the image example/gateway:v1 of tombolo-gateway is not from example.com/tombolo", "--gateway-image")
	w.must(t, upgrade+" --gateway-image example/gateway:v2")
	w.hasImages(t, "after the upgrade", map[string]string{"tombolo-gateway": "example/gateway:v2"})
	member := &hubv1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: "member-east", Name: "member"}}
	w.get(t, "hub", member)
	if diff := cmp.Diff([]hubv1alpha1.CIDR{"198.51.100.1/32"}, member.Spec.GatewayCIDRs); diff != "" {
		t.Errorf("ranges of gateways (-want +got):\n%s", diff)
	}
	w.must(t, w.join("east", "--gateway=false"))
	gateway := client.ObjectKey{Namespace: "tombolo-system", Name: "tombolo-gateway"}
	if err := w.client(t, "east").Get(t.Context(), gateway, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("after --gateway=false, the Deployment of the gateways: %v", err)
	}
}

// givenByHand: arguments that a user has added to the agent stay, and the command names them.
func (w *world) givenByHand(t *testing.T) {
	t.Helper()
	agent := w.deployment(t, "tombolo-agent")
	const given = "--deny-namespaces=elsewhere"
	var want []string
	w.edit(t, "east", agent, func() {
		container := &agent.Spec.Template.Spec.Containers[0]
		want = append([]string{given}, container.Args...)
		container.Args = slices.Clone(want)
	})
	for _, command := range []string{w.join("east", "--wait 0"), "upgrade --context east --agent-image example/agent:v2"} {
		if out := w.unchanged(t, command); !strings.Contains(out, "kept: "+given+" (") {
			t.Errorf("$ kubectl clusterset %s\n%sdoes not say that %s is kept", command, out, given)
		}
	}
	lab.Equal(t, "arguments that were given by hand", want, w.deployment(t, "tombolo-agent").Spec.Template.Spec.Containers[0].Args)
}

// scaledByHand: replicas that a user has set stay, and the command names them.
func (w *world) scaledByHand(t *testing.T) {
	t.Helper()
	agent := w.deployment(t, "tombolo-agent")
	w.edit(t, "east", agent, func() { agent.Spec.Replicas = new(int32(3)) })
	for _, command := range []string{w.join("east", "--wait 0"), w.join("east", "--wait 0 --force-conflicts")} {
		if out := w.must(t, command); !strings.Contains(out, "kept: spec.replicas of Deployment tombolo-system/tombolo-agent is 3, set by ") {
			t.Errorf("$ kubectl clusterset %s\n%sdoes not say that 3 replicas are kept", command, out)
		}
		if replicas := *w.deployment(t, "tombolo-agent").Spec.Replicas; replicas != 3 {
			t.Errorf("$ kubectl clusterset %s\nthere are %d replicas", command, replicas)
		}
	}
	w.edit(t, "east", agent, func() { agent.Spec.Replicas = new(int32(1)) })
}

// testDNS: the Corefile is changed, and changed back.
func (w *world) testDNS(t *testing.T) {
	w.refused(t, "dns --context east", cli.ExitFailed, "ConfigMap kube-system/coredns has no Corefile", "--configmap")
	w.create(t, "east", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}, Data: map[string]string{"Corefile": kubeadmCorefile}})
	w.refused(t, "dns --context east", cli.ExitFailed, "there is no Service tombolo-system/tombolo-dns", "--by kubernetes")
	corefile := func() string {
		t.Helper()
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}}
		w.get(t, "east", config)
		return config.Data["Corefile"]
	}
	out := w.must(t, "dns --context east --by kubernetes --dry-run")
	if corefile() != kubeadmCorefile || strings.Contains(out, "CoreDNS notices") {
		t.Errorf("a dry run has changed the Corefile, or says so:\n%s", out)
	}
	w.must(t, "dns --context east --by kubernetes")
	if got := corefile(); !strings.Contains(got, "multicluster clusterset.local") {
		t.Errorf("by CoreDNS' own plugin:\n%s", got)
	}
	w.unchanged(t, "dns --context east --by kubernetes")
	if found := w.traces(t, "east")["east"]; len(found) != 2 {
		t.Errorf("CoreDNS' own plugin has the rights %v", found)
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}}
	w.get(t, "east", config)
	marked := config.Data["Corefile"]
	byHand := strings.Replace(kubeadmCorefile, "ip6.arpa {\n", "ip6.arpa clusterset.local {\n       multicluster clusterset.local\n", 1)
	w.edit(t, "east", config, func() { config.Data["Corefile"] = byHand })
	if out := w.must(t, "dns --context east --by none"); corefile() != byHand || len(w.traces(t, "east")["east"]) != 2 || !strings.Contains(out, "Take that out by hand first") {
		t.Errorf("CoreDNS loses the rights that a manual edit needs, or nothing says that they stay:\n%s", out)
	}
	w.edit(t, "east", config, func() { config.Data["Corefile"] = marked })
	w.create(t, "east", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tombolo-system"}}, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-dns"},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.101.0.53", Ports: []corev1.ServicePort{{Port: 53}}},
	})
	w.must(t, "dns --context east")
	if got := corefile(); strings.Contains(got, "multicluster") || !strings.Contains(got, "forward . 10.101.0.53") {
		t.Errorf("by Tombolo's DNS:\n%s", got)
	}
	w.unchanged(t, "dns --context east")
	w.must(t, "dns --context east --by none")
	w.importedForwards(t)
	lab.Equal(t, "changed back", kubeadmCorefile, corefile())
}

// importedForwards: a second server block for the zone would be invalid, so none is added beside one in a file that the Corefile imports.
func (w *world) importedForwards(t *testing.T) {
	t.Helper()
	const file = "clusterset.local:53 {\n    forward . 10.101.0.53\n}\n"
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}}
	w.edit(t, "east", config, func() { config.Data["Corefile"] = kubeadmCorefile + "import custom/*.server\n" })
	custom := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns-custom"}, Data: map[string]string{"t.server": file}}
	w.create(t, "east", custom)
	w.unchanged(t, "dns --context east")
	w.edit(t, "east", custom, func() { custom.Data["t.server"] = strings.ReplaceAll(file, "10.101.0.53", "10.101.0.54") })
	w.refused(t, "dns --context east", cli.ExitFailed, "forwards clusterset.local to 10.101.0.54", "in t.server, which it imports", "edit configmap coredns-custom: in t.server, forward clusterset.local to 10.101.0.53")
	w.edit(t, "east", config, func() { config.Data["Corefile"] = kubeadmCorefile })
}

// copies has east leave, and join again, with Leases of other processes than the one that sends the heartbeats of east, as in a copy of east,
// and then with that of this process.
func (w *world) copies(t *testing.T) {
	beat := &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: "member-east", Name: hubv1alpha1.HeartbeatName}}
	w.get(t, "hub", beat)
	const leave = "leave --context east --hub-context hub --dry-run"
	join := w.join("east", "--dry-run")
	w.must(t, leave) // the agent has no Lease, so it is not known
	w.must(t, join)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-agent"}}
	lease.Spec.HolderIdentity = new(clusterset.LeaseHolder{Pod: "agent", Nonce: "copy"}.String())
	w.create(t, "east", lease)
	w.refused(t, leave, cli.ExitFailed, `the last heartbeat of "east" on the hub is not from the agent of this cluster`, "pass --from member")
	w.refused(t, join, cli.ExitFailed, `the agent of another cluster renews the heartbeat of "east" with the identity of this cluster`, "leave --from member", "nothing has been changed")
	w.must(t, "leave --from member --context east --dry-run")
	w.edit(t, "east", lease, func() {
		lease.Spec.HolderIdentity = new("")
		lease.Labels = map[string]string{clusterset.LabelNonce: "copy"} // it was released
	})
	w.refused(t, leave, cli.ExitFailed, `the last heartbeat of "east" on the hub is not from the agent of this cluster`)
	w.edit(t, "east", lease, func() { lease.Labels = map[string]string{clusterset.LabelNonce: beat.Spec.Nonce} })
	w.must(t, leave)
	w.must(t, join)
	lab.Must(t, w.client(t, "east").Delete(t.Context(), lease))
}

// testLeaveInterrupted: the same command finishes a leave that was interrupted. A member that no longer sends heartbeats delays it,
// but does not stop it.
//
// spec: K3
func (w *world) testLeaveInterrupted(t *testing.T) {
	w.must(t, w.join("west", "--pod-cidrs 10.2.0.0/16 --check-from-inside=false --wait 0 --agent-image example/agent:v1"))
	beat := framework.Heartbeat("west")
	beat.Spec.ClusterUID, beat.Spec.IntervalSeconds = "west", 10
	w.create(t, "hub", beat)
	clean := w.traces(t, "hub", "east")
	w.must(t, w.join("east", "--pod-cidrs 10.1.0.0/16 --check-from-inside=false --wait 0"))
	// Its finalizer keeps the agent's namespace, for which leave waits.
	obstacle := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "obstacle", Finalizers: []string{"example.com/none"}}}
	w.create(t, "east", obstacle)

	w.edit(t, "hub", beat, func() { beat.Spec.RenewTime = metav1.NowMicro() }) // joins may have taken longer than a member may be silent
	const leave = "leave --context east --hub-context hub --yes"
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out string
	var code int
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		out, code = w.runUntil(ctx, leave)
	}()
	east, namespace := w.client(t, "east"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tombolo-system"}}
	lab.Holds(t, waitLimit, "deletion of the namespace", func() bool {
		return east.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace) == nil && namespace.DeletionTimestamp != nil
	})
	interrupt()
	<-ended
	if code != cli.ExitFailed || !strings.Contains(out, "interrupted: run the same command again") {
		t.Fatalf("$ kubectl clusterset %s\n%sexit code %d", leave, out, code)
	}
	for _, text := range []string{
		"member.hub.tombolo-mcs.io/member configured\n",
		"no heartbeat of west within 30s: a member that is disconnected keeps what east exported until its --absent-member-timeout has passed",
	} {
		if !strings.Contains(out, text) {
			t.Errorf("$ kubectl clusterset %s\n%sdoes not contain %q", leave, out, text)
		}
	}

	w.edit(t, "east", obstacle, func() { obstacle.Finalizers = nil })
	w.must(t, leave)
	lab.Equal(t, "after leaving", clean, w.traces(t, "hub", "east"))
}
