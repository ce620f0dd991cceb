// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// testHubCertificateRotated: the hub gets another certificate authority, as docs/install.md says, and the agent, which is
// never restarted, goes on.
func (w *world) testHubCertificateRotated(t *testing.T) {
	startNode(t, w.Cluster("east"), w.agent)
	w.must(t, w.join("east", "--pod-cidrs 10.1.0.0/16"))
	hub := w.Cluster("hub")
	next, err := lab.NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	both := filepath.Join(t.TempDir(), "both.pem")
	if err := os.WriteFile(both, slices.Concat(hub.Config().CAData, next.PEM), 0o600); err != nil {
		t.Fatal(err)
	}
	w.must(t, w.join("east", "--hub-ca "+both))
	if err := hub.Serve(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	w.writeKubeconfig(t)
	w.beats(t)
	w.unchanged(t, w.join("east", "")) // the way to the hub is not set again, and stays; it waits for a heartbeat, too
	alone := filepath.Join(t.TempDir(), "new.pem")
	if err := os.WriteFile(alone, next.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	w.must(t, w.join("east", "--hub-ca "+alone)) // the old one is taken out
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-hub"}}
	w.get(t, "east", secret)
	if !bytes.Equal(secret.Data["ca.crt"], next.PEM) {
		t.Error("the agent still trusts the old certificate authority")
	}
	w.beats(t)
}

// testJoinAgain: a member whose ServiceAccount on the hub was deleted joins again and gets a token that the hub knows; and
// where the hub has another URL, its agent starts anew with that, which stays then.
func (w *world) testJoinAgain(t *testing.T) {
	startNode(t, w.Cluster("east"), w.agent)
	w.must(t, w.join("east", "--pod-cidrs 10.1.0.0/16"))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "member-east", Name: "tombolo-agent"}}
	if err := w.client(t, "hub").Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	if out := w.must(t, w.join("east", "")); !strings.Contains(out, "configured Secret tombolo-system/tombolo-hub") {
		t.Errorf("the token of an account that is no more is kept:\n%s", out)
	}
	w.unchanged(t, w.join("east", ""))

	agent := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-agent"}}
	w.get(t, "east", agent)
	before := agent.Spec.Template.DeepCopy()
	other := strings.Replace(w.Cluster("hub").Config().Host, "127.0.0.1", "localhost", 1)
	w.must(t, w.join("east", "--hub-server "+other)) // it waits for the heartbeat of an agent that knows the other URL
	w.get(t, "east", agent)
	if reflect.DeepEqual(before, &agent.Spec.Template) {
		t.Error("the agent has not been started anew: it still asks at the old URL")
	}
	out := w.unchanged(t, "join --context east --hub-context hub") // the kubeconfig's URL would be refused: it is another one
	if !strings.Contains(out, "agents will reach the hub at "+other+" (as before)") {
		t.Errorf("without --hub-server:\n%s", out)
	}
	w.unchanged(t, "upgrade --context east")
}

// beats returns when the agent of east has renewed its heartbeat twice.
func (w *world) beats(t *testing.T) {
	t.Helper()
	beat := &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: "member-east", Name: hubv1alpha1.HeartbeatName}}
	w.get(t, "hub", beat)
	seen := map[string]bool{beat.ResourceVersion: true}
	hub := w.client(t, "hub")
	w.eventually(t, "heartbeat", func() bool {
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(beat), beat); err == nil {
			seen[beat.ResourceVersion] = true
		}
		return len(seen) > 2
	})
}

// testRevoked: a member whose rights on the hub have been taken away, as docs/install.md says, is refused at once, though
// its token is good for days.
func (w *world) testRevoked(t *testing.T) {
	startNode(t, w.Cluster("east"), w.agent)
	w.must(t, w.join("east", "--pod-cidrs 10.1.0.0/16"))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-hub"}}
	w.get(t, "east", secret)
	hub := w.Cluster("hub")
	stolen := rest.Config{Host: hub.Config().Host, BearerToken: string(secret.Data["token"]), TLSClientConfig: rest.TLSClientConfig{CAData: secret.Data["ca.crt"]}}
	thief, err := client.New(&stolen, client.Options{Scheme: w.client(t, "hub").Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	read := func() error { return thief.List(t.Context(), &hubv1alpha1.PublishedServiceList{}) }
	write := func() error {
		return thief.Create(t.Context(), &hubv1alpha1.PublishedEndpoints{
			ObjectMeta: metav1.ObjectMeta{Namespace: "member-east", Name: "default.web.0123456789"},
			Spec:       hubv1alpha1.PublishedEndpointsSpec{Namespace: "default", Service: "web", AddressType: "IPv4"},
		}, client.DryRunAll)
	}
	w.eventually(t, "right to read and write", func() bool { return read() == nil && write() == nil })
	admin := w.client(t, "hub")
	for _, binding := range []client.Object{
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "member-east", Name: "tombolo-agent"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "tombolo-hub-read:east"}},
	} {
		if err := admin.Delete(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually(t, "refusal", func() bool { return apierrors.IsForbidden(read()) && apierrors.IsForbidden(write()) })
}
