// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/tombolo-mcs/tombolo/controllers/queue"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestReverts: the first reverts of a service are not delayed, and later ones have ten seconds between them, however often another writer
// changes its records. Another service is not affected.
//
// spec: K2
func TestReverts(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
	reverts := queue.NewReverts(clock)
	web := clusterset.ServiceKey{Namespace: "shop", Name: "web"}
	written, retried := 0, 0
	for end := clock.Now().Add(time.Minute); clock.Now().Before(end); {
		delay := reverts.Delay(web)
		if delay == 0 {
			written++
			clock.SetTime(clock.Now().Add(time.Millisecond)) // until the other writer has answered
			continue
		}
		retried++
		clock.SetTime(clock.Now().Add(delay))
	}
	if written != 5+5 || retried > written {
		t.Errorf("%d reverts in a minute, and %d delays, want 10", written, retried)
	}
	for i := range 5 {
		other := clusterset.ServiceKey{Namespace: "shop", Name: "other"}
		if delay := reverts.Delay(other); delay != 0 {
			t.Errorf("revert %d of another service is delayed by %s", i, delay)
		}
	}
	for reverts.Delay(web) == 0 { //nolint:revive // until it is delayed
	}
	for i := range 5000 { // full limiters are removed
		reverts.Delay(clusterset.ServiceKey{Namespace: "many", Name: fmt.Sprint(i)})
	}
	if delay := reverts.Delay(web); delay == 0 {
		t.Error("a limiter that is not full was removed")
	}
}
