// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tombolo-mcs/tombolo/controllers/publication"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
)

// unanswered is a hub, behind a proxy, that accepts each write and does not answer before the request is cancelled.
type unanswered struct {
	client.Client

	// longest is the longest duration of a request, and requests the number of cancelled ones.
	longest  time.Duration
	requests int
}

func (u *unanswered) Create(ctx context.Context, _ client.Object, _ ...client.CreateOption) error {
	begun := time.Now()
	<-ctx.Done()
	u.requests++
	u.longest = max(u.longest, time.Since(begun))
	return ctx.Err()
}

// TestUnansweredHeartbeats: if the hub does not answer, the agent tries to write a heartbeat at each interval, and does not block
// the processing of other members' heartbeats for longer than that.
//
// spec: D9
func TestUnansweredHeartbeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const period = 10 * time.Second
		scheme := runtime.NewScheme()
		must(t, hubv1alpha1.AddToScheme(scheme))
		member := &hubv1alpha1.Member{
			ObjectMeta: metav1.ObjectMeta{Namespace: "member-own", Name: hubv1alpha1.MemberName},
			Spec:       hubv1alpha1.MemberSpec{ClusterID: "own"},
		}
		snapshot, err := hub.Read(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(member).Build())
		must(t, err)
		silent := &unanswered{}
		p := &Presence{
			Cluster: "own", Interval: period, Store: snapshot.Store("own", clusterset.AddressRanges{}), Hub: apply.ToHub(silent, "member-own"),
			Progress: publication.NewProgress(), Tracker: liveness.NewTracker(period, liveness.GracePeriods*period),
			Clock: clock.RealClock{}, Log: logr.Discard(),
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*period)
		defer cancel()
		must(t, p.Start(ctx))
		if silent.requests < 8 || silent.longest > period {
			t.Errorf("%d requests in 10 intervals of %s, the longest for %s", silent.requests, period, silent.longest)
		}
	})
}
