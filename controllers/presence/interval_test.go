// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/publish"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// recorder records the heartbeats that are written. It refuses writes if fails is set.
type recorder struct {
	client.Client

	mu    sync.Mutex
	fails error
	beats []writtenBeat
}

type writtenBeat struct {
	at    time.Time
	named time.Duration
}

func (r *recorder) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	return r.record(o, func() error { return r.Client.Create(ctx, o, options...) })
}

func (r *recorder) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	return r.record(o, func() error { return r.Client.Update(ctx, o, options...) })
}

func (r *recorder) record(o client.Object, write func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails != nil {
		return r.fails
	}
	beat := o.(*hubv1alpha1.Heartbeat)
	r.beats = append(r.beats, writtenBeat{time.Now(), time.Duration(beat.Spec.IntervalSeconds) * time.Second})
	return write()
}

func (r *recorder) setFails(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails = err
}

// TestIntervalFollowsMembers: with more than 100 members the heartbeats are further apart. While the number of members changes, and
// while the hub refuses a single heartbeat, none is later than twice what the last one names, with the jitter of a tenth: so no reader
// counts this member as silent.
//
// spec: D9
func TestIntervalFollowsMembers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := present(t, memberOf("own"))
		beats := &recorder{Client: p.hub}
		p.Interval, p.Clock, p.Progress, p.Hub = interval, clock.RealClock{}, publish.NewProgress(), apply.ToHub(beats, "member-own")
		ended := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- p.Start(ctx) }()
		other := func(i int) *hubv1alpha1.Member { return memberOf(clusterset.ClusterID(fmt.Sprintf("m%d", i))) }
		pass := func(d, want time.Duration) {
			t.Helper()
			time.Sleep(d) //nolint:forbidigo // the clock of a synctest bubble
			synctest.Wait()
			beats.mu.Lock()
			defer beats.mu.Unlock()
			check.Equal(t, "the heartbeat names", want, beats.beats[len(beats.beats)-1].named)
		}
		pass(time.Minute, interval)
		for i := range 399 {
			check.Must(t, p.hub.Create(ctx, other(i)))
			synctest.Wait()
		}
		beats.setFails(context.DeadlineExceeded)
		time.Sleep(interval + interval/10) //nolint:forbidigo // the clock of a synctest bubble
		beats.setFails(nil)
		pass(10*time.Minute, 4*interval)
		for i := range 300 {
			check.Must(t, p.hub.Delete(ctx, other(i)))
			synctest.Wait()
		}
		pass(10*time.Minute, interval)
		cancel()
		check.Must(t, <-ended)
		longest := time.Duration(0)
		for i, beat := range beats.beats[1:] {
			last := beats.beats[i]
			gap := beat.at.Sub(last.at)
			if longest = max(longest, gap); gap > 2*(last.named+last.named/10) {
				t.Errorf("%s after a heartbeat that names %s", gap, last.named)
			}
		}
		if longest < 4*interval {
			t.Errorf("the heartbeats of 400 members are at most %s apart, want %s", longest, 4*interval)
		}
	})
}
