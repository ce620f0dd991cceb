// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tombolo-mcs/tombolo/controllers/publish"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// heldLease is the Lease of a process, until it loses it.
type heldLease struct{ lost atomic.Bool }

func (l *heldLease) Held(context.Context) (bool, error) { return !l.lost.Load(), nil }

func (l *heldLease) Ended(string) bool { return false }

// TestReplicasHandOver: 20 replicas of one cluster lead one after the other. Half of them continue for a while without their Lease, as after
// they were suspended. None is taken for a copy, and each may write records two seconds after it has begun to lead. A process of
// a copy, which has a Lease of its own, yields, and the heartbeat shows since when there is a copy.
//
// spec: K2
func TestReplicasHandOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		check.Must(t, hubv1alpha1.AddToScheme(scheme))
		server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(memberOf("own")).Build()
		lead := func(nonce string) (*presentMember, *heldLease, func()) {
			p, lease := presentAt(t, server, nonce), &heldLease{}
			p.Interval, p.Grace, p.Clock, p.Progress, p.Lease = interval, 4*interval, clock.RealClock{}, publish.NewProgress(), lease
			p.Hub, p.Live = apply.ToHub(server, "member-own"), server
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- p.Start(ctx) }()
			return p, lease, func() {
				cancel()
				check.Must(t, <-ended)
			}
		}
		pass := func(d time.Duration) {
			time.Sleep(d) //nolint:forbidigo // the clock of a synctest bubble
			synctest.Wait()
		}
		contestedAt := func() *metav1.MicroTime {
			heartbeat := &hubv1alpha1.Heartbeat{}
			check.Must(t, server.Get(t.Context(), client.ObjectKey{Namespace: "member-own", Name: hubv1alpha1.HeartbeatName}, heartbeat))
			return heartbeat.Spec.ContestedAt
		}
		wants := func(step string, p *presentMember, want string) {
			t.Helper()
			heartbeat := &hubv1alpha1.Heartbeat{}
			check.Must(t, server.Get(t.Context(), client.ObjectKey{Namespace: "member-own", Name: hubv1alpha1.HeartbeatName}, heartbeat))
			if heartbeat.Spec.Nonce != want || p.Refusal() != "" || p.Contests() != 0 || !p.MayWrite() || heartbeat.Spec.ContestedAt != nil {
				t.Errorf("%s: the heartbeat is that of %s, want %s; refusal %q, %d contests, contested at %v, may write: %t",
					step, heartbeat.Spec.Nonce, want, p.Refusal(), p.Contests(), heartbeat.Spec.ContestedAt, p.MayWrite())
			}
		}
		last, lease, end := lead("replica-0")
		pass(confirmation)
		wants("the first", last, "replica-0")
		for i := range 20 {
			nonce := fmt.Sprintf("replica-%d", i+1)
			lease.lost.Store(true)
			if i%2 == 0 {
				end()
			}
			next, nextLease, endNext := lead(nonce)
			pass(confirmation)
			wants("a replica", next, nonce)
			pass(3 * interval)
			wants("a replica, later", next, nonce)
			if i%2 == 1 {
				end()
			}
			last, lease, end = next, nextLease, endNext
		}
		c, _, endCopy := lead("copy")
		pass(confirmation)
		if c.Refusal() == "" || c.MayWrite() || last.Refusal() != "" || !last.MayWrite() || last.Contests() != 1 {
			t.Errorf("the copy: refusal %q, may write: %t; the original: refusal %q, may write: %t, %d contests",
				c.Refusal(), c.MayWrite(), last.Refusal(), last.MayWrite(), last.Contests())
		}
		contested := contestedAt()
		pass(3 * interval)
		end()
		last, _, end = lead("replica-21") // the next process knows it from the heartbeat
		pass(3 * interval)
		if at := contestedAt(); at == nil || !at.Equal(contested) || last.Contests() != 0 {
			t.Errorf("the heartbeat says that it was contested at %v, and after a hand-over at %v", contested, at)
		}
		end()
		pass(6 * interval)
		if c.Refusal() != "" || !c.MayWrite() {
			t.Errorf("the copy does not take over from a process that is silent: %q", c.Refusal())
		}
		endCopy()
	})
}
