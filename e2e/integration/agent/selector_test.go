// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestDerivedSelector: if the agents are configured so, the derived Service has the oldest export's selector, a cluster's own
// matching pods join by Kubernetes' own controller, and none is there twice. Told otherwise, all of that goes again.
//
// spec: D8, E1, I5
func TestDerivedSelector(t *testing.T) {
	t.Parallel()
	w := newEnv(t, membership.Hub(), lab.Member("a"), lab.ClusterOptions{Name: "b", Controllers: lab.DefaultControllers()})
	a, b := w.members["a"], w.members["b"]
	selecting := func(o *agent.Options) { o.Selector = clusterset.OldestSelector }
	a.Start(t, selecting)
	stop := b.Start(t, selecting)

	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	service := world.Service(k, world.Port("http", 80))
	service.Spec.Selector = map[string]string{"app": "web"}
	a.ExportService(t, service, world.Slice(service, "v4", "10.1.0.1"))
	b.runPod(t, k.Namespace, "web", "10.2.0.1")
	_, derived := b.Imported(t, k)
	lab.Equal(t, "selector", service.Spec.Selector, derived.Spec.Selector)
	if target := derived.Spec.Ports[0].TargetPort.IntValue(); target != 8080 {
		t.Errorf("the target port is %d, want that of the exporter's pods", target)
	}
	b.Endpoints(t, k, "a 10.1.0.1:http:8080", " 10.2.0.1:http:8080")

	younger := world.Service(k, world.Port("http", 80))
	younger.Spec.Selector = map[string]string{"app": "web"}
	b.ExportService(t, younger)
	a.Endpoints(t, k, "b 10.2.0.1:http:8080") // a's own are for Kubernetes to find; there is no such controller here
	b.Endpoints(t, k, "a 10.1.0.1:http:8080", " 10.2.0.1:http:8080")

	stop()
	b.Start(t)
	b.Endpoints(t, k, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
	_, after := b.Imported(t, k)
	if after.Spec.Selector != nil {
		t.Errorf("the derived Service still selects %v", after.Spec.Selector)
	}
	lab.Equal(t, "addresses", derived.Spec.ClusterIPs, after.Spec.ClusterIPs)
}

// runPod creates a pod that is as it would be if it ran.
func (m *member) runPod(t *testing.T, namespace, app, address string) {
	t.Helper()
	if err := m.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}); !apierrors.IsAlreadyExists(err) {
		lab.Must(t, err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app, Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			NodeName:                     "node-1",
			AutomountServiceAccountToken: new(false),
			Containers:                   []corev1.Container{{Name: app, Image: app}},
		},
	}
	world.Eventually(t, func(ctx context.Context) error { // there is no pod before the namespace's ServiceAccount
		if err := m.Create(ctx, pod); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
	world.Eventually(t, func(ctx context.Context) error {
		if err := m.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, address, []corev1.PodIP{{IP: address}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if err := m.Status().Update(ctx, pod); err != nil {
			return fmt.Errorf("run pod %s: %w", app, err)
		}
		return nil
	})
}
