// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

const many = 25

// TestLoss: records that the hub has lost are not withdrawn; what was withdrawn while no agent watched is deleted if that is confirmed.
//
// spec: E3, I2
func TestLoss(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
	stopA, stopB := a.Start(t), b.Start(t)
	keys := services(world.Namespace(t, a, b), "svc", many)
	for i, k := range keys {
		a.ExportWeb(t, k, fmt.Sprintf("10.1.0.%d", i+1))
	}
	for i, k := range keys {
		b.Imported(t, k)
		b.Endpoints(t, k, fmt.Sprintf("a 10.1.0.%d:http:8080", i+1))
	}

	// The hub loses all records of a while no agent watches, but not the heartbeat that says Complete.
	stopA()
	stopB()
	member := client.InNamespace("member-a")
	lab.Must(t, w.HubClient.DeleteAllOf(t.Context(), &hubv1alpha1.PublishedService{}, member))
	lab.Must(t, w.HubClient.DeleteAllOf(t.Context(), &hubv1alpha1.PublishedEndpoints{}, member))
	w.noRecords(t, "a", keys...)
	stopB = b.Start(t)
	for i, k := range keys {
		b.ImportCondition(t, k, conditions.TypeDeletionPending, metav1.ConditionTrue, conditions.ReasonAwaitingConfirmation, "")
		b.Endpoints(t, k, fmt.Sprintf("a 10.1.0.%d:http:8080", i+1))
	}
	b.Gauge(t, "tombolo_unconfirmed_services", many)
	stopA = a.Start(t) // it publishes everything again
	for _, k := range keys {
		b.WithoutCondition(t, k, conditions.TypeDeletionPending)
	}
	b.Gauge(t, "tombolo_unconfirmed_services", 0)

	// Withdrawn while b was down: gone when a's heartbeat confirms it.
	withdraw := func() {
		for _, k := range keys {
			lab.Must(t, a.Delete(t.Context(), world.Export(k)))
		}
		w.noRecords(t, "a", keys...)
	}
	stopB()
	withdraw()
	stopB = b.Start(t)
	b.Gone(t, keys...)
	for _, k := range keys {
		lab.Must(t, a.Create(t.Context(), world.Export(k)))
		b.Imported(t, k)
	}
	stopB()
	withdraw()
	stopA() // no heartbeat confirms it
	b.Start(t)
	for _, k := range keys {
		b.ImportCondition(t, k, conditions.TypeDeletionPending, metav1.ConditionTrue, conditions.ReasonAwaitingConfirmation, "")
	}
	w.ChangeMember(t, "a", suspend)
	b.Gone(t, keys...)
}

func suspend(spec *hubv1alpha1.MemberSpec) { spec.Suspended = true }

// TestPartialPublication: what a list of the hub lacks of a member that has not published everything is not gone. What it was seen to
// withdraw is, for as long as the hub may refuse the rest, and what it has left is the others'.
//
// spec: E3, R3, R8
func TestPartialPublication(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
	stopA, stopB := a.Start(t), b.Start(t)
	ns := world.Namespace(t, a, b)
	web, left, shared := key{Namespace: ns, Name: "web"}, key{Namespace: ns, Name: "left"}, key{Namespace: ns, Name: "shared"}
	older, _ := b.ExportWeb(t, shared, "10.2.0.1")
	w.later(t, b.Condition(t, shared, ready, metav1.ConditionTrue, "Exported").LastTransitionTime)
	more := world.Slice(world.Service(web, world.Port("http", 80)), "more", "10.1.0.9")
	for i, k := range []key{web, left, shared} {
		a.ExportWeb(t, k, fmt.Sprintf("10.1.0.%d", i+1))
	}
	lab.Must(t, a.Create(t.Context(), more))
	b.Endpoints(t, web, "a 10.1.0.1:http:8080", "a 10.1.0.9:http:8080")
	b.Endpoints(t, left, "a 10.1.0.2:http:8080")
	b.Endpoints(t, shared, "a 10.1.0.3:http:8080", "b 10.2.0.1:http:8080")

	// It may publish nothing more, whatever goes (its quota's controller may count one too few); its agent is started again.
	refused := key{Namespace: ns, Name: "refused"}
	w.limitServices(t, "a", "0")
	a.ExportWeb(t, refused)
	a.Condition(t, refused, ready, metav1.ConditionFalse, "Failed")
	stopA()
	stopA = a.Start(t)
	world.Eventually(t, func(ctx context.Context) error { return a.says(ctx, w, hubv1alpha1.PublicationPartial) })
	lab.Must(t, a.Delete(t.Context(), world.Export(left)))
	b.Gone(t, left)
	lab.Must(t, a.Delete(t.Context(), more))
	b.Endpoints(t, web, "a 10.1.0.1:http:8080")
	lab.Must(t, a.Delete(t.Context(), world.Export(shared)))
	older.Spec.Ports[0].Port = 8080
	lab.Must(t, b.Update(t.Context(), older))
	for _, m := range []*member{a, b} {
		m.ports(t, shared, "http:8080")
		m.Endpoints(t, shared, "b 10.2.0.1:http:8080")
	}
	lab.Must(t, a.says(t.Context(), w, hubv1alpha1.PublicationPartial))
	b.Imported(t, web)
	stopA()
	stopB()
	b.keepsWithoutRecords(t, w, web)
	lab.Must(t, a.Delete(t.Context(), world.Export(web)))
	w.limitServices(t, "a", "500")
	a.Start(t)
	b.Gone(t, web)
	b.Imported(t, refused)
}

// keepsWithoutRecords takes the records of member a from the hub while no agent watches, starts the member's agent, and returns when that
// would have withdrawn the import that it has of a, if it were to.
func (m *member) keepsWithoutRecords(t *testing.T, w *env, k key) {
	t.Helper()
	lab.Must(t, w.HubClient.DeleteAllOf(t.Context(), &hubv1alpha1.PublishedService{}, client.InNamespace("member-a")))
	lab.Must(t, w.HubClient.DeleteAllOf(t.Context(), &hubv1alpha1.PublishedEndpoints{}, client.InNamespace("member-a")))
	w.noRecords(t, "a", k)
	m.Start(t)
	witness := key{Namespace: k.Namespace, Name: "witness"} // what comes later has come, so the other is not coming
	m.ExportWeb(t, witness)
	m.Condition(t, witness, conflict, metav1.ConditionFalse, "NoConflicts")
	m.Imported(t, k)
	m.Endpoints(t, k, "a 10.1.0.1:http:8080")
}

// TestSilentMember: the endpoints of a member that is gone leave a service that others serve too, and return with it. Its exports count
// all the while, and what only it serves, or gives names to, stays. (internal/liveness.TestServing: port by port and family by family, however
// many are silent.)
//
// spec: D9, I2, I3
func TestSilentMember(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
	kill := a.Start(t)
	b.Start(t)
	ns := world.Namespace(t, a, b)
	both, alone, headless := key{Namespace: ns, Name: "both"}, key{Namespace: ns, Name: "alone"}, key{Namespace: ns, Name: "headless"}
	for i, m := range []*member{a, b} {
		m.ExportWeb(t, both, fmt.Sprintf("10.%d.0.1", i+1))
		pets := world.Headless(headless, world.Port("http", 80))
		m.ExportService(t, pets, world.Slice(pets, "v4", fmt.Sprintf("10.%d.0.2", i+1)))
	}
	a.ExportWeb(t, alone, "10.1.0.3")
	b.Endpoints(t, both, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
	b.Endpoints(t, headless, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080")
	b.Endpoints(t, alone, "a 10.1.0.3:http:8080")
	a.Condition(t, both, conflict, metav1.ConditionFalse, "NoConflicts")
	w.settled(t) // the status may come after the slices
	before, _ := b.Imported(t, both)
	b.Gauge(t, "tombolo_member_live", 1)

	kill()
	b.Gauge(t, "tombolo_member_live", 0)
	b.Endpoints(t, both, "b 10.2.0.1:http:8080")
	more := world.Slice(world.Headless(headless, world.Port("http", 80)), "more", "10.2.0.3")
	lab.Must(t, b.Create(t.Context(), more)) // b reconciles it again, and the other
	b.Endpoints(t, headless, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080", "b 10.2.0.3:http:8080")
	b.Endpoints(t, alone, "a 10.1.0.3:http:8080")
	after, _ := b.Imported(t, both)
	lab.Equal(t, "the status changed", before.Status, after.Status)
	b.Condition(t, both, conflict, metav1.ConditionFalse, "NoConflicts")

	local := world.Slice(world.Service(both), "v4")
	b.setReady(t, local, false)
	b.Endpoints(t, both, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080") // the silent one is the last resort
	b.setReady(t, local, true)
	b.Endpoints(t, both, "b 10.2.0.1:http:8080")
	b.Endpoints(t, headless, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080", "b 10.2.0.3:http:8080")
	b.Endpoints(t, alone, "a 10.1.0.3:http:8080")

	a.Start(t)
	b.Gauge(t, "tombolo_member_live", 1)
	b.Endpoints(t, both, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
	b.Endpoints(t, headless, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080", "b 10.2.0.3:http:8080")
}
