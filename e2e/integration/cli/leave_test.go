// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// testLeaveInterrupted: the same command finishes a leave that was interrupted. A member that no longer sends heartbeats delays it,
// but does not stop it.
//
// spec: K3
func (w *world) testLeaveInterrupted(t *testing.T) {
	w.must(t, w.join("west", "--pod-cidrs 10.2.0.0/16 --check-from-inside=false --wait 0 --agent-image example/agent:v1"))
	w.create(t, "hub", &hubv1alpha1.Heartbeat{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-west", Name: hubv1alpha1.HeartbeatName},
		Spec:       hubv1alpha1.HeartbeatSpec{RenewTime: metav1.NowMicro(), ClusterUID: "west", IntervalSeconds: 5, Publication: hubv1alpha1.PublicationComplete},
	})
	clean := w.traces(t, "hub", "east")
	w.must(t, w.join("east", "--pod-cidrs 10.1.0.0/16 --check-from-inside=false --wait 0"))
	// Its finalizer keeps the agent's namespace, for which leave waits.
	obstacle := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "obstacle", Finalizers: []string{"example.com/none"}}}
	w.create(t, "east", obstacle)

	const leave = "leave --context east --hub-context hub"
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
	eventually(t, "deletion of the namespace", func() bool {
		return east.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace) == nil && namespace.DeletionTimestamp != nil
	})
	interrupt()
	<-ended
	if code != cli.ExitFailed || !strings.Contains(out, "interrupted: run the same command again") {
		t.Fatalf("$ kubectl clusterset %s\n%sexit code %d", leave, out, code)
	}
	for _, text := range []string{
		"configured Member member-east/member: suspended",
		"no heartbeat of west within 15s: a member that is disconnected keeps what east exported until its --absent-member-timeout has passed",
	} {
		if !strings.Contains(out, text) {
			t.Errorf("$ kubectl clusterset %s\n%sdoes not contain %q", leave, out, text)
		}
	}

	w.edit(t, "east", obstacle, func() { obstacle.Finalizers = nil })
	w.must(t, leave)
	lab.Equal(t, "after leaving", clean, w.traces(t, "hub", "east"))
}
