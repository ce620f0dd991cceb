// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/breaker"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
)

const (
	interval     = 10 * time.Second
	confirmation = time.Hour
)

// TestMassDeletionIsConfirmed: that most of a member's records are gone is believed when the confirmation period has passed, the
// member lives, and its heartbeat says that its publication is complete; or where the hub's administrator says so, at once.
//
// spec: E3, D9
func TestMassDeletionIsConfirmed(t *testing.T) {
	t.Parallel()
	const complete, partial = hubv1alpha1.PublicationComplete, hubv1alpha1.PublicationPartial
	const early = confirmation - 1
	of := func(ids ...hubv1alpha1.ClusterID) []hubv1alpha1.ClusterID { return ids }
	for name, test := range map[string]struct {
		state       liveness.State
		publication hubv1alpha1.Publication
		passed      time.Duration
		accepted    []hubv1alpha1.ClusterID
		want        string
	}{
		"alive and complete":               {liveness.Live, complete, confirmation, nil, "released"},
		"alive and complete, too early":    {liveness.Live, complete, early, nil, "held"},
		"alive, but not complete":          {liveness.Live, partial, confirmation, nil, "held"},
		"alive, not complete, too early":   {liveness.Live, partial, early, nil, "held"},
		"silent":                           {liveness.Silent, complete, confirmation, nil, "held"},
		"silent, too early":                {liveness.Silent, complete, early, nil, "held"},
		"not heard of":                     {liveness.Unknown, complete, confirmation, nil, "held"},
		"not heard of, too early":          {liveness.Unknown, complete, early, nil, "held"},
		"by hand, alive and complete":      {liveness.Live, complete, 0, of("a"), "released"},
		"by hand, not complete":            {liveness.Live, partial, 0, of("b", "a"), "released"},
		"by hand, silent":                  {liveness.Silent, complete, confirmation, of("a"), "released"},
		"by hand, not heard of":            {liveness.Unknown, partial, 0, of("a"), "released"},
		"by hand, but of another, early":   {liveness.Live, complete, early, of("b"), "held"},
		"by hand, but of another, partial": {liveness.Live, partial, confirmation, of("b"), "held"},
		"by hand, but of another, late":    {liveness.Live, complete, 100 * confirmation, of("b"), "released"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				own := memberOf("own")
				own.Spec.AcceptDeletionsOf = test.accepted
				p := present(t, own, memberOf("a"), heartbeatOf("own", complete), heartbeatOf("a", test.publication))
				p.become(t, "a", test.state)
				p.lose(t, "a")
				p.clock.Step(test.passed)
				p.confirm()
				got := "held"
				if len(p.Store.Holds()) == 0 {
					got = "released"
				}
				if got != test.want {
					t.Errorf("the deletion is %s, want it %s", got, test.want)
				}
			})
		})
	}
}

// presentMember is a member's Presence beside the Store of its connection to a hub, which holds what a test has written there.
type presentMember struct {
	*Presence
	hub   client.Client
	clock *clocktesting.FakeClock
	heard *signs
}

// present returns the Presence of member "own" once it has read what the hub holds. It belongs into a bubble of synctest.
func present(t *testing.T, held ...client.Object) *presentMember {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, hubv1alpha1.AddToScheme(scheme))
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(held...).Build()
	store := hub.NewStore("own", clusterset.Fence{})
	clock := clocktesting.NewFakeClock(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC))
	p := &presentMember{
		Presence: &Presence{
			Cluster: "own", Confirmation: confirmation, Store: store, Clock: clock, Log: logr.Discard(),
			Tracker: liveness.NewTracker(interval, liveness.GracePeriods*interval),
		},
		hub: server, clock: clock, heard: listen(store),
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- hub.NewConnection(store, server, logr.Discard(), func(hub.Reachability) {}).Start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
	p.take(t)
	return p
}

// take has the signs of life taken in that the hub has given.
func (p *presentMember) take(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if !p.Store.Synced() {
		t.Fatal("the hub has not been read")
	}
	p.judge(p.heard.take())
}

// renew renews the heartbeat of a member, whatever else it says.
func (p *presentMember) renew(t *testing.T, id clusterset.ClusterID) {
	t.Helper()
	heartbeat := &hubv1alpha1.Heartbeat{}
	must(t, p.hub.Get(t.Context(), client.ObjectKey{Namespace: id.HubNamespace(), Name: hubv1alpha1.HeartbeatName}, heartbeat))
	heartbeat.Spec.RenewTime = metav1.NewMicroTime(p.clock.Now())
	must(t, p.hub.Update(t.Context(), heartbeat))
	p.take(t)
}

// become has a member be heard of, and not be heard of any more, as this state says.
func (p *presentMember) become(t *testing.T, id clusterset.ClusterID, state liveness.State) {
	t.Helper()
	if state != liveness.Unknown {
		p.renew(t, id)
	}
	for beats := 0; state == liveness.Silent && beats <= liveness.GracePeriods+1; beats++ {
		p.clock.Step(interval)
		p.renew(t, p.Cluster)
	}
	if got := p.State(id); got != state {
		t.Fatalf("%s is %s, want %s", id, got, state)
	}
}

// lose has this cluster find that the hub holds none of the many records that it has of a member, and hold them.
func (p *presentMember) lose(t *testing.T, id clusterset.ClusterID) {
	t.Helper()
	var records []breaker.Record
	for i := range 21 {
		records = append(records, breaker.Record{Key: clusterset.ServiceKey{Namespace: "shop", Name: fmt.Sprint("web-", i)}})
	}
	found, err := p.Store.Judge(p.clock.Now(), func() (map[clusterset.ClusterID][]breaker.Record, error) {
		return map[clusterset.ClusterID][]breaker.Record{id: records}, nil
	})
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("held are %+v, want the deletions of %s", found, id)
	}
}

func memberOf(id clusterset.ClusterID) *hubv1alpha1.Member {
	return &hubv1alpha1.Member{
		ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: hubv1alpha1.MemberName},
		Spec:       hubv1alpha1.MemberSpec{ClusterID: string(id)},
	}
}

func heartbeatOf(id clusterset.ClusterID, publication hubv1alpha1.Publication) *hubv1alpha1.Heartbeat {
	return &hubv1alpha1.Heartbeat{
		ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: hubv1alpha1.HeartbeatName},
		Spec:       hubv1alpha1.HeartbeatSpec{Publication: publication},
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
