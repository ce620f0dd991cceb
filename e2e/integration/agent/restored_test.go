// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestRestored: the hub and a member's API server are restored from older backups, so that they are at earlier resource versions than
// agents have seen. The agents detect it and list again: what a backup lacks is published and imported again, what it should not have is
// withdrawn, what is outdated is corrected, and later changes arrive. (chaos: hub restored from a backup older than a member, and with
// records that no agent writes again.)
//
// spec: E3, I1, I2, D7
func TestRestored(t *testing.T) {
	t.Parallel()
	w := newEnv(t, membership.Hub(), lab.Member("a"), lab.Member("b"))
	w.removePolicies(t) // an API server that was restarted may take half a minute until its policies find the Members again
	a, b := w.members["a"], w.members["b"]
	a.Start(t)
	b.Start(t)
	ns := world.Namespace(t, a, b)
	offer := func(from, to *member, name, address string) key {
		k := key{Namespace: ns, Name: name}
		from.ExportWeb(t, k, address)
		to.Imported(t, k)
		return k
	}
	kept, withdrawn := offer(a, b, "kept", "10.1.0.1"), offer(a, b, "withdrawn", "10.1.0.2")
	moved, ownWithdrawn := offer(a, b, "moved", "10.1.0.3"), offer(b, a, "own-withdrawn", "10.2.0.1")
	before, _ := b.Imported(t, kept)
	backups := map[*lab.Cluster]string{w.Hub: filepath.Join(t.TempDir(), "hub"), b.Cluster: filepath.Join(t.TempDir(), "b")}
	for cluster, path := range backups {
		lab.Must(t, cluster.Backup(t.Context(), path))
	}

	lab.Must(t, a.Delete(t.Context(), world.Export(withdrawn)))
	b.Gone(t, withdrawn)
	a.move(t, moved, "10.1.0.33")
	b.Endpoints(t, moved, "a 10.1.0.33:http:8080")
	lab.Must(t, b.Delete(t.Context(), world.Export(ownWithdrawn)))
	a.Gone(t, ownWithdrawn)
	change(t, w.HubClient)
	change(t, b)
	later, ownLater := offer(a, b, "later", "10.1.0.4"), offer(b, a, "own-later", "10.2.0.2")
	for cluster, path := range backups {
		lab.Must(t, cluster.Restore(t.Context(), path))
	}

	world.Eventually(t, func(ctx context.Context) error {
		return w.HubClient.Get(ctx, key{Namespace: "member-a", Name: ns + "." + later.Name}, &hubv1alpha1.PublishedService{})
	})
	w.noRecords(t, "a", withdrawn)
	b.Imported(t, later)
	b.Endpoints(t, later, "a 10.1.0.4:http:8080")
	b.Endpoints(t, moved, "a 10.1.0.33:http:8080")
	b.Gone(t, withdrawn)
	a.Gone(t, ownLater)
	a.Imported(t, ownWithdrawn)
	a.Endpoints(t, ownWithdrawn, "b 10.2.0.1:http:8080")
	b.Endpoints(t, kept, "a 10.1.0.1:http:8080")
	if after, _ := b.Imported(t, kept); after.UID != before.UID || !slices.Equal(after.Spec.IPs, before.Spec.IPs) {
		t.Errorf("the import that the backup has was %s %v and is %s %v", before.UID, before.Spec.IPs, after.UID, after.Spec.IPs)
	}
	b.Endpoints(t, offer(a, b, "new", "10.1.0.5"), "a 10.1.0.5:http:8080")
	a.Endpoints(t, offer(b, a, "own-new", "10.2.0.3"), "b 10.2.0.3:http:8080")
}

// change changes a cluster more often than an API server does by itself when it starts.
func change(t *testing.T, c client.Client) {
	t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "changes"}}
	lab.Must(t, c.Create(t.Context(), o))
	for i := range 200 {
		o.Data = map[string]string{"n": strconv.Itoa(i)}
		lab.Must(t, c.Update(t.Context(), o))
	}
}

// move gives the first endpoint of a service another address.
func (m *member) move(t *testing.T, k key, address string) {
	t.Helper()
	s := world.Read(t, m, key{Namespace: k.Namespace, Name: k.Name + "-v4"}, &discoveryv1.EndpointSlice{})
	s.Endpoints[0].Addresses = []string{address}
	lab.Must(t, m.Update(t.Context(), s))
}

// removePolicies removes the hub's policies and waits until they are out of force.
func (w *env) removePolicies(t *testing.T) {
	t.Helper()
	lab.Must(t, w.HubClient.DeleteAllOf(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{}))
	probe := world.Heartbeat("a")
	probe.Labels = map[string]string{"refused": ""}
	_, foreign := world.Records("a", key{Namespace: metav1.NamespaceSystem, Name: "web"}, "127.0.0.1")
	foreign.Name = "wrong"
	world.Eventually(t, func(ctx context.Context) error {
		return errors.Join(
			w.HubClient.Create(ctx, probe.DeepCopy(), client.DryRunAll), w.HubClient.Create(ctx, foreign.DeepCopy(), client.DryRunAll))
	})
}
