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

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const interval = 10 * time.Second

// TestAbsentMember: a cluster with missing records and without a Member on the hub becomes silent, and its exports are removed
// after the timeout. Its Member may be created before that.
func TestAbsentMember(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := present(t, memberOf("own"), heartbeatOf("own", hubv1alpha1.PublicationComplete))
		p.AbsentTimeout = 10 * interval
		web := clusterset.ServiceKey{Namespace: "shop", Name: "web"}
		missing := func() int { return len(p.Store.Import(web, sources.Imported{"ghost": nil}).Missing) }
		beat := func(n int) {
			for range n {
				p.clock.Step(interval)
				p.renew(t, p.Cluster)
			}
		}
		want := func(step string, state liveness.State, want int) {
			t.Helper()
			check.Equal(t, fmt.Sprintf("%s: the ghost", step), state, p.State("ghost"))
			if got := missing(); got != want {
				t.Errorf("%s: missing of %d clusters, want %d", step, got, want)
			}
		}
		want("at first", liveness.Unknown, 1)
		beat(liveness.GracePeriods + 2)
		want("after the grace period", liveness.Silent, 1)
		check.Must(t, p.hub.Create(t.Context(), memberOf("ghost")))
		beat(20)
		want("with a Member", liveness.Silent, 1)
		check.Must(t, p.hub.Delete(t.Context(), memberOf("ghost")))
		p.take(t)
		want("with its Member deleted", liveness.Unknown, 0)
	})
	synctest.Test(t, func(t *testing.T) {
		p := present(t, memberOf("own"), heartbeatOf("own", hubv1alpha1.PublicationComplete))
		p.AbsentTimeout = 10 * interval
		web := clusterset.ServiceKey{Namespace: "shop", Name: "web"}
		for beats, want := range []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0} {
			if got := len(p.Store.Import(web, sources.Imported{"ghost": nil}).Missing); got != want {
				t.Fatalf("after %d heartbeats: missing of %d clusters, want %d", beats, got, want)
			}
			p.clock.Step(interval)
			p.renew(t, p.Cluster)
		}
	})
}

// presentMember is a member's Presence, with the Store of its connection to a hub that has the objects of the test.
type presentMember struct {
	*Presence
	hub    client.Client
	clock  *clocktesting.FakeClock
	events *eventBuffer
}

// present returns the Presence of member "own" after it has read the hub. The test must run in a synctest bubble.
func present(t *testing.T, held ...client.Object) *presentMember {
	t.Helper()
	scheme := runtime.NewScheme()
	check.Must(t, hubv1alpha1.AddToScheme(scheme))
	return presentAt(t, fake.NewClientBuilder().WithScheme(scheme).WithObjects(held...).Build(), "nonce")
}

// presentAt is present for a process with a nonce, and a hub that several may use.
func presentAt(t *testing.T, server client.WithWatch, nonce string) *presentMember {
	t.Helper()
	store := hub.NewStore("own", clusterset.AddressRanges{})
	clock := clocktesting.NewFakeClock(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC))
	p := &presentMember{
		Presence: &Presence{
			Cluster: "own", Claim: NewClaim("", nonce), Store: store, Clock: clock, Log: logr.Discard(),
			Tracker: liveness.NewTracker(interval, liveness.GracePeriods*interval),
		},
		hub: server, clock: clock, events: subscribe(store),
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- hub.NewConnection(store, server, logr.Discard(), func(hub.Reachability) {}).Start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		check.Must(t, <-ended)
	})
	p.take(t)
	return p
}

// take processes the events of the store.
func (p *presentMember) take(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if !p.Store.Synced() {
		t.Fatal("the hub has not been read")
	}
	p.process(p.events.take())
}

// renew renews the heartbeat of a member without other changes.
func (p *presentMember) renew(t *testing.T, id clusterset.ClusterID) {
	t.Helper()
	heartbeat := &hubv1alpha1.Heartbeat{}
	check.Must(t, p.hub.Get(t.Context(), client.ObjectKey{Namespace: id.HubNamespace(), Name: hubv1alpha1.HeartbeatName}, heartbeat))
	heartbeat.Spec.RenewTime = metav1.NewMicroTime(p.clock.Now())
	check.Must(t, p.hub.Update(t.Context(), heartbeat))
	p.take(t)
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
