// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestMetadata: imports have the labels and annotations that the ServiceExport lists, and no others. Those of a domain are
// imported if the cluster's agent allows it, from its next start on; otherwise they are left out, which the import reports
// once.
//
// spec: D3, E7, I8, R4
func TestMetadata(t *testing.T) {
	t.Parallel()
	_, a, b := newPair(t)
	a.Start(t)
	stop := b.Start(t)
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	private := map[string]string{"private": "x"}
	service, exported := world.Service(k, world.Port("http", 80)), world.Export(k)
	service.Labels, service.Annotations, exported.Labels, exported.Annotations = private, private, private, private
	exported.Spec.ExportedLabels = map[string]string{"team": "blue", "service.kubernetes.io/headless": "", "example.com/tier": "gold", "kuma.io/mesh": "x"}
	exported.Spec.ExportedAnnotations = map[string]string{"docs": "y", "service.beta.kubernetes.io/aws-load-balancer-internal": "true", "example.com/note": "z"}
	world.Create(t, a, service, exported)

	const leftOut = "The service is imported. Left out: labels and annotations of these domains: "
	const remedy = ". To import them, add the domains to --allow-metadata-domains of this cluster's agent."
	has := func(domains string, labels, annotations map[string]string) {
		t.Helper()
		b.ImportCondition(t, k, "Ready", metav1.ConditionTrue, "Ready", leftOut+domains+remedy)
		b.ImportedWith(t, k, func(i *mcsv1beta1.ServiceImport, derived *corev1.Service) error {
			all := map[string]string{"app.kubernetes.io/managed-by": "tombolo-mcs.io", "team": "blue"}
			onService := map[string]string{"multicluster.kubernetes.io/service-name": "web", "multicluster.kubernetes.io/service-imported": "true"}
			notes := map[string]string{"docs": "y", "multicluster.kubernetes.io/derived-service": derived.Name}
			maps.Copy(all, labels)
			maps.Copy(onService, all)
			maps.Copy(notes, annotations)
			lab.Equal(t, "labels and annotations", []map[string]string{all, onService, notes, nil}, []map[string]string{i.Labels, derived.Labels, i.Annotations, derived.Annotations})
			return nil
		})
	}
	has("example.com, kuma.io", nil, nil)
	b.Event(t, k, "MetadataLeftOut", "")

	stop()
	stop = b.Start(t, func(o *agent.Options) { o.MetadataDomains = []string{"example.com"} })
	has("kuma.io", map[string]string{"example.com/tier": "gold"}, map[string]string{"example.com/note": "z"})
	stop()
	b.Start(t)
	has("example.com, kuma.io", nil, nil)
}

// TestPublicationReportedAtOnce: a member reports a complete publication, and up to which versions it is complete, without waiting for
// the next regular heartbeat; again if the hub loses the heartbeat. A record that the
// hub loses is written again.
//
// spec: E3
func TestPublicationReportedAtOnce(t *testing.T) {
	t.Parallel()
	w, a, _ := newPair(t)
	k := key{Namespace: world.Namespace(t, a), Name: "web"}
	a.ExportWeb(t, k, "10.1.0.1")
	a.Start(t, func(o *agent.Options) { o.HeartbeatInterval = 5 * time.Minute })
	heartbeat := &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: hubv1alpha1.HeartbeatName}}
	record := &hubv1alpha1.PublishedService{ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: k.Namespace + "." + k.Name}}
	for _, lost := range []client.Object{nil, heartbeat, record} {
		if lost != nil {
			lab.Must(t, w.HubClient.Delete(t.Context(), lost.DeepCopyObject().(client.Object)))
		}
		world.Eventually(t, func(ctx context.Context) error {
			err := errors.Join(
				w.HubClient.Get(ctx, client.ObjectKeyFromObject(record), record), w.HubClient.Get(ctx, client.ObjectKeyFromObject(heartbeat), heartbeat))
			known := heartbeat.Spec.ServicesVersion == record.ResourceVersion && heartbeat.Spec.EndpointsVersion != "" || lost == record
			if got := heartbeat.Spec; err == nil && (got.Publication != hubv1alpha1.PublicationComplete || !known) {
				err = fmt.Errorf("after the loss of %T: the heartbeat says %+v of record %s", lost, got, record.ResourceVersion)
			}
			return err
		})
	}
}

// TestTokenRenewal: an agent renews its token for the hub where it lies when a third of its life is over, not before, and
// the new one is good.
func TestTokenRenewal(t *testing.T) {
	t.Parallel()
	w, a, _ := newPair(t)
	secret := hubSecretFor(47 * time.Hour)
	secret.Data = map[string][]byte{"token": []byte("old"), "kubeconfig": []byte("as it is")}
	lab.Must(t, a.Create(t.Context(), secret))
	renewing := func(o *agent.Options) { o.HubSecret, o.TokenLifetime = hubSecret, 72*time.Hour }

	stop := a.Start(t, renewing)
	secret = world.Await(t, a, hubSecret, secret, func(s *corev1.Secret) error {
		if string(s.Data["token"]) == "old" {
			return errors.New("the token is not renewed")
		}
		return nil
	})
	until, err := time.Parse(time.RFC3339, secret.Annotations[clusterset.AnnotationTokenExpires])
	lab.Must(t, err)
	if left := time.Until(until); left < 71*time.Hour || left > 73*time.Hour {
		t.Errorf("the new token is good for %s", left)
	}
	if string(secret.Data["kubeconfig"]) != "as it is" {
		t.Errorf("the rest of the Secret has changed: %q", secret.Data["kubeconfig"])
	}
	fresh := rest.AnonymousClientConfig(a.Hub)
	fresh.BearerToken = string(secret.Data["token"])
	hub, err := client.New(fresh, client.Options{Scheme: w.HubClient.Scheme()})
	lab.Must(t, err)
	world.Eventually(t, func(ctx context.Context) error { // the token speaks for the member
		return hub.List(ctx, &hubv1alpha1.MemberList{})
	})

	// Nothing is renewed that is fresh: neither now, nor when an agent starts.
	stop()
	a.Start(t, renewing)
	a.Gauge(t, "tombolo_hub_token_expiry_timestamp_seconds", float64(until.Unix()))
	k := key{Namespace: world.Namespace(t, a), Name: "web"}
	a.ExportService(t, world.Service(k, world.Port("http", 80)))
	a.Imported(t, k) // so it has started: an agent that is stopped while it starts may need more than its ten seconds
	if world.Read(t, a, hubSecret, &corev1.Secret{}).ResourceVersion != secret.ResourceVersion {
		t.Error("a fresh token was renewed")
	}
}

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
