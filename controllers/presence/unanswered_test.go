// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/publish"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/check"
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
		p, silent := present(t, memberOf("own")), &unanswered{}
		p.Interval, p.Clock, p.Progress, p.Hub = interval, clock.RealClock{}, publish.NewProgress(), apply.ToHub(silent, "member-own")
		ctx, cancel := context.WithTimeout(t.Context(), 10*interval)
		defer cancel()
		check.Must(t, p.Start(ctx))
		if silent.requests < 8 || silent.longest > interval {
			t.Errorf("%d requests in 10 intervals of %s, the longest for %s", silent.requests, interval, silent.longest)
		}
	})
}
