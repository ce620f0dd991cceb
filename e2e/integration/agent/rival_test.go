// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
)

// testTakenOver: a cluster that was built anew gets its ID back once the old one is silent, and not because the hub was.
func (w *world) testTakenOver(t *testing.T, kill func()) {
	a, b := w.members["a"], w.members["b"]
	questions := &heartbeatQuestions{}
	config := rest.CopyConfig(a.hub)
	config.Wrap(questions.through)
	b.startWith(t, func(o *agent.Options) {
		o.ClusterID, o.Hub = "a", config
		o.HeartbeatInterval = 3 * time.Second // so that a is not silent where one of its beats takes some seconds
	})
	owner := func(m *member) error {
		heartbeat := &hubv1alpha1.Heartbeat{}
		if err := w.hubKube.Get(t.Context(), key{Namespace: "member-a", Name: hubv1alpha1.HeartbeatName}, heartbeat); err != nil {
			return err
		}
		if heartbeat.Spec.ClusterUID != m.uid(t) {
			return fmt.Errorf("the ID is not that of cluster %s", m.id)
		}
		return nil
	}
	reach := func(count *atomic.Int32, n int32) {
		t.Helper()
		n += count.Load()
		eventually(t, func(context.Context) error {
			if got := count.Load(); got < n {
				return fmt.Errorf("%d questions for the heartbeat, not %d yet", got, n)
			}
			return nil
		})
	}
	reach(&questions.answered, 1)
	lab.Must(t, w.hub.APIServer.Freeze())
	reach(&questions.unanswered, 2*liveness.GracePeriods) // one at each interval
	lab.Must(t, w.hub.APIServer.Thaw())
	reach(&questions.answered, 2)
	for range liveness.GracePeriods {
		a.beats(t, w)
	}
	lab.Must(t, owner(a))

	kill()
	eventually(t, func(context.Context) error { return owner(b) })
}

// heartbeatQuestions counts what an agent asks of a heartbeat alone.
type heartbeatQuestions struct{ answered, unanswered atomic.Int32 }

func (q *heartbeatQuestions) through(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/heartbeats/"+hubv1alpha1.HeartbeatName) {
			if err != nil {
				q.unanswered.Add(1)
			} else {
				q.answered.Add(1)
			}
		}
		return response, err
	})
}
