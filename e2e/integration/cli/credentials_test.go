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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

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
	w.beats(t)
	w.unchanged(t, w.join("east", "")) // URL and certificate authority stay; it waits for a heartbeat, too
	alone := filepath.Join(t.TempDir(), "new.pem")
	lab.Must(t, os.WriteFile(alone, next.PEM, 0o600))
	w.must(t, w.join("east", "--hub-ca "+alone)) // without the old one
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-hub"}}
	w.get(t, "east", secret)
	if !bytes.Equal(secret.Data["ca.crt"], next.PEM) {
		t.Error("the agent still trusts the old certificate authority")
	}
	w.beats(t)
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

	agent := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-agent"}}
	w.get(t, "east", agent)
	before := agent.Spec.Template.DeepCopy()
	other := strings.Replace(w.Cluster("hub").Config().Host, "127.0.0.1", "localhost", 1)
	w.must(t, w.join("east", "--hub-server "+other)) // it waits for a heartbeat through the other URL
	w.get(t, "east", agent)
	if reflect.DeepEqual(before, &agent.Spec.Template) {
		t.Error("the agent was not restarted, so it uses the old URL")
	}
	out := w.unchanged(t, "join --context east --hub-context hub") // not the kubeconfig's URL, which would be refused
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
	lab.Holds(t, waitLimit, "heartbeat", func() bool {
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(beat), beat); err == nil {
			seen[beat.ResourceVersion] = true
		}
		return len(seen) > 2
	})
}
