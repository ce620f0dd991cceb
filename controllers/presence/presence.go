// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package presence tells the others that this member is there, how far its publication has come, and, by which cluster
// it speaks for, sees to it that no two clusters bear one ID (spec K2). It is the only writer of the own Heartbeat.
package presence

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/publication"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
)

// Presence writes this member's Heartbeat, decides whether this cluster may speak for its ID, and listens to the
// others' heartbeats.
type Presence struct {
	Cluster clusterset.ClusterID
	// ClusterUID is the UID of this cluster's kube-system namespace.
	ClusterUID   string
	AgentVersion string
	// Interval is the time between heartbeats. A tenth of it is added at random.
	Interval time.Duration
	// Grace is how long another cluster under this ID must have been silent, at least, before this one takes the ID over.
	Grace time.Duration
	// AbsentTimeout is how long a cluster may have no Member on the hub, though nobody was seen to delete it, before what it
	// exported is removed here.
	AbsentTimeout time.Duration
	Store         *hub.Store
	Hub           apply.Writer
	// Live reads from the hub itself.
	Live     client.Reader
	Progress *publication.Progress
	// Tracker judges which members are alive.
	Tracker *liveness.Tracker
	Clock   clock.WithTicker
	Log     logr.Logger

	// mu guards Tracker. The rest belongs to the loop of Start.
	mu      sync.Mutex
	silence silence
	said    string
	// written is what our last Heartbeat said of our publication.
	written publication.Publication
}

// NeedLeaderElection returns true: only one replica speaks for the cluster.
func (p *Presence) NeedLeaderElection() bool { return true }

// Start writes heartbeats until ctx ends: at every interval, and at once when there is none on the hub or the
// publication has come further.
func (p *Presence) Start(ctx context.Context) error {
	listed := make(chan struct{}, 1)
	p.Store.Subscribe(func(event hub.Event) {
		if event.All {
			select {
			case listed <- struct{}{}:
			default:
			}
		}
	})
	heard := listen(p.Store)
	timer := p.Clock.NewTimer(0)
	defer timer.Stop()
	refused := ""
	for {
		regular := false
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C():
			timer.Reset(p.Interval + rand.N(p.Interval/10+1))
			regular = true
		case <-listed:
		case <-p.Progress.Completed():
		case <-heard.news:
			p.judge(heard.take())
		}
		synced := p.Store.Synced()                // before it is asked whose ID it is: what is known by now must be what was listed
		heartbeat := p.Store.Heartbeat(p.Cluster) // once: what is written over must be what was judged
		refusal := p.refusal(heartbeat)
		if refusal != refused {
			p.Log.Info("whether this cluster may speak for its ID has changed", "refusal", refusal)
			p.Store.Refresh() // what waited for this may go ahead
		}
		refused = refusal
		if refusal == "" && synced && (regular || p.outdated(heartbeat)) || refusal != "" && regular && p.rivalExpired(ctx) {
			p.report(p.beat(ctx, heartbeat))
		}
	}
}

// outdated reports whether the hub has no Heartbeat of ours, or we have written none since the hub was last listed that says how
// far our publication has come.
func (p *Presence) outdated(heartbeat *hubv1alpha1.Heartbeat) bool {
	published := p.Progress.Publication()
	return heartbeat == nil || p.written.State != published.State || p.written.Listing != published.Listing
}

// beat writes the Heartbeat once, over the one that was observed. A hub that does not answer within an interval is asked again at the
// next, and keeps nobody from taking in what others say meanwhile.
func (p *Presence) beat(ctx context.Context, observed *hubv1alpha1.Heartbeat) error {
	ctx, cancel := context.WithTimeout(ctx, p.Interval)
	defer cancel()
	published := p.Progress.Publication()
	desired := &hubv1alpha1.Heartbeat{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Cluster.HubNamespace(), Name: hubv1alpha1.HeartbeatName},
		Spec: hubv1alpha1.HeartbeatSpec{
			RenewTime:        metav1.NewMicroTime(p.Clock.Now()),
			ClusterUID:       p.ClusterUID,
			AgentVersion:     p.AgentVersion,
			IntervalSeconds:  int32(math.Ceil(p.Interval.Seconds())),
			Services:         int32(p.Store.OwnServices()),
			Publication:      published.State,
			ServicesVersion:  published.Versions.Services,
			EndpointsVersion: published.Versions.Endpoints,
		},
	}
	_, err := apply.Do(ctx, p.Hub, plan.Heartbeat(desired, observed))
	switch {
	case errors.Is(err, apply.ErrStale):
		return nil // our own last heartbeat is not back yet; when it is, we look again
	case err == nil:
		p.written = published
	}
	return err
}

// report logs an error once for as long as it stays the same.
func (p *Presence) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != p.said && err != nil {
		p.Log.Error(err, "cannot write the heartbeat; trying again at the next interval")
	}
	p.said = text
}
