// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestPublicationReportedAtOnce: others need not wait for the next regular heartbeat to read that a member has published
// everything, and few heartbeats are spent on it.
func TestPublicationReportedAtOnce(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a := w.members["a"]
	seldom := func(o *agent.Options) { o.HeartbeatInterval = 5 * time.Minute }
	k := key{Namespace: world.Namespace(t, a), Name: "web"}
	a.ExportWeb(t, k)
	var tooMany []int64
	for range 5 { // "partial", "complete", and one more where an interval begins just then
		stop := a.Start(t, seldom)
		world.Eventually(t, func(ctx context.Context) error { return a.says(ctx, w, hubv1alpha1.PublicationComplete) })
		heartbeat := &hubv1alpha1.Heartbeat{}
		lab.Must(t, w.HubClient.Get(t.Context(), key{Namespace: "member-a", Name: hubv1alpha1.HeartbeatName}, heartbeat))
		if heartbeat.Generation > 3 {
			tooMany = append(tooMany, heartbeat.Generation)
		}
		stop()
		lab.Must(t, w.HubClient.Delete(t.Context(), heartbeat))
	}
	if len(tooMany) > 1 { // once, a busy hub may end a watch: after a list, all begins anew
		t.Errorf("it took %d heartbeats", tooMany)
	}
	stop := a.Start(t, seldom)
	a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")

	// A hub that loses a heartbeat gets another, and so does one that loses everything.
	for _, lost := range []func() error{
		func() error {
			return w.HubClient.Delete(t.Context(), &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: hubv1alpha1.HeartbeatName}})
		},
		func() error {
			return w.HubClient.Delete(t.Context(), &hubv1alpha1.PublishedService{ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: k.Namespace + "." + k.Name}})
		},
	} {
		world.Eventually(t, func(context.Context) error { return lost() })
		world.Eventually(t, func(ctx context.Context) error { return a.says(ctx, w, hubv1alpha1.PublicationComplete) })
		world.Eventually(t, func(ctx context.Context) error {
			return w.HubClient.Get(ctx, key{Namespace: "member-a", Name: k.Namespace + "." + k.Name}, &hubv1alpha1.PublishedService{})
		})
	}
	stop()
}
