// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
)

// TestHubRestored: a hub that is restored from an older backup is at an earlier resource version than agents have seen. They
// notice: what the backup lacks is recorded again, what it should not hold is deleted, and what comes later gets through. Where it lacks
// the records of a member that publishes nothing again, what the others have of it stays until the member is suspended.
//
// spec: E3, I2
func TestHubRestored(t *testing.T) {
	t.Parallel()
	w := newEnv(t, membership.Hub(), lab.Member("a"), lab.Member("b"))
	w.unfence(t) // an API server that was restarted may take half a minute until its policies find the Members again
	a, b := w.members["a"], w.members["b"]
	for _, m := range []*member{a, b} {
		m.Start(t)
	}
	ns := world.Namespace(t, a, b)
	offered := func(name string, n int) key {
		service, _ := a.ExportWeb(t, key{Namespace: ns, Name: name}, fmt.Sprintf("10.1.0.%d", n))
		b.Imported(t, client.ObjectKeyFromObject(service))
		return client.ObjectKeyFromObject(service)
	}
	kept, withdrawn := offered("kept", 1), offered("withdrawn", 2)
	w.Enroll(t, "ghost")
	lab.Must(t, w.Renew(t.Context(), "ghost"))
	backup := filepath.Join(t.TempDir(), "backup")
	lab.Must(t, w.Hub.Backup(t.Context(), backup))

	lab.Must(t, a.Delete(t.Context(), world.Export(withdrawn)))
	b.Gone(t, withdrawn)
	change(t, w.HubClient)
	later := offered("later", 3)
	lost := w.haunt(t, ns)
	joined := w.joinLate(t, ns)
	for i, k := range lost {
		for _, m := range []*member{a, b} { // what a member has not seen when the hub goes, it cannot miss
			m.Imported(t, k)
			m.Endpoints(t, k, haunted(i))
		}
	}
	for _, m := range []*member{a, b} { // what is in its cache, by which it judges
		m.Gauge(t, "tombolo_imports", float64(2+len(lost)+len(joined)))
		m.Gauge(t, "tombolo_imports_not_ready", 0)
	}
	lab.Must(t, w.Hub.Restore(t.Context(), backup))

	record := &hubv1alpha1.PublishedService{}
	world.Eventually(t, func(ctx context.Context) error {
		return w.HubClient.Get(ctx, key{Namespace: "member-a", Name: ns + "." + later.Name}, record)
	})
	world.Eventually(t, func(ctx context.Context) error {
		if err := w.HubClient.Get(ctx, key{Namespace: "member-a", Name: ns + "." + withdrawn.Name}, record); client.IgnoreNotFound(err) != nil {
			return err
		} else if err == nil {
			return fmt.Errorf("%s is still recorded", withdrawn)
		}
		return nil
	})
	b.Gone(t, withdrawn)
	b.Endpoints(t, kept, "a 10.1.0.1:http:8080")
	b.Endpoints(t, later, "a 10.1.0.3:http:8080")
	b.Endpoints(t, offered("new", 4), "a 10.1.0.4:http:8080")

	for i, k := range lost {
		for _, m := range []*member{a, b} {
			m.ImportCondition(t, k, conditions.TypeDeletionPending, metav1.ConditionTrue, conditions.ReasonAwaitingConfirmation, "")
			m.Endpoints(t, k, haunted(i))
		}
	}
	// Of a cluster that joined after the backup the hub has no Member: its endpoints leave what others serve, all else stays.
	b.Endpoints(t, joined[0], "late 10.99.1.1:http:8080")
	b.Endpoints(t, joined[1], "b 10.2.0.1:http:8080")
	for _, k := range joined {
		b.ImportCondition(t, k, conditions.TypeDeletionPending, metav1.ConditionTrue, conditions.ReasonAwaitingConfirmation, "")
	}
	if i, _ := b.Imported(t, joined[1]); len(i.Status.Clusters) != 2 {
		t.Errorf("exporters of %s: %v", joined[1], i.Status.Clusters)
	}
	local := world.Slice(world.Service(joined[1], world.Port("http", 80)), "v4", "10.2.0.1")
	local.Endpoints[0].Conditions.Ready = new(false)
	lab.Must(t, b.Update(t.Context(), local))
	b.Endpoints(t, joined[1], "b 10.2.0.1:http:8080", "late 10.99.1.2:http:8080") // the last resort
	w.ChangeMember(t, "ghost", suspend)
	for _, k := range lost {
		a.Gone(t, k)
		b.Gone(t, k)
	}
	b.Imported(t, kept)
	w.Enroll(t, "late") // it joins again, without these services
	lab.Must(t, w.Renew(t.Context(), "late"))
	b.Gone(t, joined[0])
	b.Endpoints(t, joined[1], "b 10.2.0.1:http:8080")
}

// joinLate has cluster late join and export two services, the second of which b exports too.
func (w *env) joinLate(t *testing.T, ns string) []key {
	t.Helper()
	b := w.members["b"]
	alone, shared := key{Namespace: ns, Name: "late-alone"}, key{Namespace: ns, Name: "late-shared"}
	b.ExportWeb(t, shared, "10.2.0.1")
	w.Enroll(t, "late")
	lab.Must(t, w.Renew(t.Context(), "late"))
	w.Publish(t, "late", alone, nil, "10.99.1.1")
	w.Publish(t, "late", shared, nil, "10.99.1.2")
	lab.Must(t, w.Renew(t.Context(), "late")) // now it is known to be alive
	b.Endpoints(t, alone, "late 10.99.1.1:http:8080")
	b.Endpoints(t, shared, "b 10.2.0.1:http:8080", "late 10.99.1.2:http:8080")
	for _, m := range w.members {
		m.Imported(t, alone)
		m.Imported(t, shared)
	}
	return []key{alone, shared}
}

// haunt records services of member ghost, which has no agent.
func (w *env) haunt(t *testing.T, ns string) []key {
	t.Helper()
	var keys []key
	for i := range 3 {
		k := key{Namespace: ns, Name: fmt.Sprintf("ghost-%02d", i)}
		w.Publish(t, "ghost", k, nil, fmt.Sprintf("10.99.0.%d", i+1))
		keys = append(keys, k)
	}
	return keys
}

// haunted is what member ghost contributes to the service that it has recorded as the n-th, as member.endpoints has it.
func haunted(n int) string { return fmt.Sprintf("ghost 10.99.0.%d:http:8080", n+1) }

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

// TestMemberRestored: a member's API server is restored from a backup under its running agent. The agent lists again: what the backup
// lacks is imported and published again, what it should not hold is withdrawn, what is outdated is corrected, and later changes get
// through in both directions.
//
// spec: E3, I1, I2, D7
func TestMemberRestored(t *testing.T) {
	t.Parallel()
	w := newEnv(t, membership.Hub(), lab.Member("a"), lab.Member("b"))
	a, b := w.members["a"], w.members["b"]
	a.Start(t)
	b.Start(t)
	ns := world.Namespace(t, a, b)
	offer := func(from, to *member, name string, n int) key {
		service, _ := from.ExportWeb(t, key{Namespace: ns, Name: name}, fmt.Sprintf("10.%s.0.%d", subnets[from.ID], n))
		to.Imported(t, client.ObjectKeyFromObject(service))
		return client.ObjectKeyFromObject(service)
	}
	kept, withdrawn, moved := offer(a, b, "kept", 1), offer(a, b, "withdrawn", 2), offer(a, b, "moved", 3)
	ownWithdrawn := offer(b, a, "own-withdrawn", 1)
	before, _ := b.Imported(t, kept)
	backup := filepath.Join(t.TempDir(), "backup")
	lab.Must(t, b.Cluster.Backup(t.Context(), backup))

	lab.Must(t, a.Delete(t.Context(), world.Export(withdrawn)))
	b.Gone(t, withdrawn)
	a.move(t, moved, "10.1.0.33")
	b.Endpoints(t, moved, "a 10.1.0.33:http:8080")
	lab.Must(t, b.Delete(t.Context(), world.Export(ownWithdrawn)))
	a.Gone(t, ownWithdrawn)
	change(t, b)
	later, ownLater := offer(a, b, "later", 4), offer(b, a, "own-later", 2)
	lab.Must(t, b.Cluster.Restore(t.Context(), backup))

	b.Imported(t, later)
	b.Endpoints(t, later, "a 10.1.0.4:http:8080")
	b.Endpoints(t, moved, "a 10.1.0.33:http:8080")
	b.Gone(t, withdrawn)
	a.Gone(t, ownLater)
	a.Imported(t, ownWithdrawn)
	a.Endpoints(t, ownWithdrawn, "b 10.2.0.1:http:8080")
	b.Endpoints(t, kept, "a 10.1.0.1:http:8080")
	if after, _ := b.Imported(t, kept); after.UID != before.UID || !slices.Equal(after.Spec.IPs, before.Spec.IPs) {
		t.Errorf("the import that the backup holds was %s %v and is %s %v", before.UID, before.Spec.IPs, after.UID, after.Spec.IPs)
	}
	b.Endpoints(t, offer(a, b, "new", 5), "a 10.1.0.5:http:8080")
	a.Endpoints(t, offer(b, a, "own-new", 3), "b 10.2.0.3:http:8080")
}

// subnets are the second octets of the members' pods.
var subnets = map[string]string{"a": "1", "b": "2"}

// move gives the first endpoint of a service another address.
func (m *member) move(t *testing.T, k key, address string) {
	t.Helper()
	s := &discoveryv1.EndpointSlice{}
	lab.Must(t, m.Get(t.Context(), key{Namespace: k.Namespace, Name: k.Name + "-v4"}, s))
	s.Endpoints[0].Addresses = []string{address}
	lab.Must(t, m.Update(t.Context(), s))
}

// unfence removes the hub's policies and waits until they are out of force.
func (w *env) unfence(t *testing.T) {
	t.Helper()
	lab.Must(t, w.HubClient.DeleteAllOf(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{}))
	probe := &hubv1alpha1.Heartbeat{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: hubv1alpha1.HeartbeatName, Labels: map[string]string{"refused": ""}},
		Spec:       hubv1alpha1.HeartbeatSpec{RenewTime: metav1.NowMicro(), Publication: hubv1alpha1.PublicationPartial},
	}
	foreign := &hubv1alpha1.PublishedEndpoints{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: "wrong"},
		Spec: hubv1alpha1.PublishedEndpointsSpec{
			Namespace: metav1.NamespaceSystem, Service: "web", AddressType: "IPv4",
			Groups: []hubv1alpha1.EndpointGroup{{Addresses: []hubv1alpha1.IPAddress{"127.0.0.1"}}},
		},
	}
	world.Eventually(t, func(ctx context.Context) error {
		return errors.Join(
			w.HubClient.Create(ctx, probe.DeepCopy(), client.DryRunAll), w.HubClient.Create(ctx, foreign.DeepCopy(), client.DryRunAll))
	})
}
