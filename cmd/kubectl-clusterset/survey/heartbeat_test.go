// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey_test

import (
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/surveytest"
	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestConnected: each member is silent by its own interval.
func TestConnected(t *testing.T) {
	t.Parallel()
	r := &surveytest.Records{}
	for _, id := range []clusterset.ClusterID{"east", "ghost", "north", "west"} {
		r.Member(id)
	}
	r.Beat("east", "v1.1.0", hubv1alpha1.PublicationComplete, 40*time.Second)
	r.Beat("north", "v1.1.0", hubv1alpha1.PublicationPartial, time.Second)
	r.Beat("west", "v1.1.0", hubv1alpha1.PublicationComplete, 20*time.Second)
	r.Heartbeats[2].Spec.IntervalSeconds = 2 // so that it is silent after 8 s
	want := map[clusterset.ClusterID]time.Duration{"east": 10 * time.Second, "north": 10 * time.Second}
	check.Equal(t, "connected", want, r.Hub(t).Connected())
}
