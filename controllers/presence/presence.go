// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package presence renews this member's Heartbeat with the state of its publication, ensures that only one cluster uses an ID (spec
// K2), and tracks the heartbeats of the other members. It is the only writer of the local Heartbeat.
package presence

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/publish"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Presence writes this member's Heartbeat, decides whether this cluster may use its ID, and tracks the other members' heartbeats.
type Presence struct {
	Cluster clusterset.ClusterID
	// ClusterUID is the UID of this cluster's kube-system namespace.
	ClusterUID   string
	AgentVersion string
	// Claim decides which of several processes with the identity of this cluster continues.
	Claim *Claim
	// Lease is that of this process; nil if no leader is elected.
	Lease Lease
	// Interval is the time between heartbeats with up to 100 members; with more, it is longer. A tenth of it is added at random.
	Interval time.Duration
	// Grace is the minimum time for which another cluster with this ID must be silent before this one takes the ID over.
	Grace time.Duration
	// AbsentTimeout is the time after which the imports of an absent member are deleted.
	AbsentTimeout time.Duration
	Store         *hub.Store
	Hub           apply.Writer
	// Live reads from the hub without a cache.
	Live     client.Reader
	Progress *publish.Progress
	// Tracker decides which members are live.
	Tracker *liveness.Tracker
	Clock   clock.WithTicker
	Log     logr.Logger

	// mu guards Tracker, Claim, contests, contestedAt, notify, mayWrite, denied and refused. The rest belongs to the loop of Start.
	mu       sync.Mutex
	contests int
	// contestedAt is when the last of contests was; nil if there was none.
	contestedAt *metav1.MicroTime
	notify      []func()
	// mayWrite is the last permission that the loop has seen. denied is set if MayWrite was false, and refused if Refusal was not empty, since
	// the last notification: a Heartbeat of another process may come and go between two events that the loop sees.
	mayWrite, denied, refused bool
	silence                   silence
	// logged is the last error, so that it is logged once.
	logged string
	// written is the publication in the last Heartbeat that was written.
	written publish.Publication
	// interval is what the next Heartbeat names. It changes only when a Heartbeat is due, so that none names a shorter time than it
	// takes until the next one.
	interval time.Duration
	// atOnce limits the Heartbeats that replace the one of a process with a higher term at once.
	atOnce *rate.Limiter
}

// contestBurst is the number of Heartbeats of processes with higher terms that are replaced at once.
const contestBurst = 5

// NeedLeaderElection returns true: only one replica writes the Heartbeat.
func (p *Presence) NeedLeaderElection() bool { return true }

// currentInterval returns the time between heartbeats for the present number of members.
func (p *Presence) currentInterval() time.Duration {
	return liveness.Interval(p.Interval, len(p.Store.Members()))
}

// untilNext returns the time until the next Heartbeat is due: the interval, or that of the Heartbeat on the hub if it is shorter. So a
// longer interval is used only after other members can read it.
func (p *Presence) untilNext() time.Duration {
	next := p.interval
	if named := p.Store.HeartbeatInterval(p.Cluster); named > 0 {
		next = min(next, named)
	}
	return next + rand.N(next/10+1)
}

// Start renews the Heartbeat until ctx ends: at every interval, and at once if the hub has none or the publication has changed.
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
	events := subscribe(p.Store)
	p.interval = p.Interval
	timer, confirmed := p.Clock.NewTimer(0), p.Clock.NewTimer(confirmation)
	defer timer.Stop()
	defer confirmed.Stop()
	for refusal := ""; ; {
		regular := false
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C():
			p.interval, regular = p.currentInterval(), true
			timer.Reset(p.untilNext())
		case <-confirmed.C():
		case <-listed:
		case <-p.Progress.Completed():
		case <-events.filled:
			p.process(events.take())
		}
		synced := p.Store.Synced()                // before the heartbeat is read: the heartbeat must be from the list
		heartbeat := p.Store.Heartbeat(p.Cluster) // once: the decision and the write must use the same
		refusal = p.update(heartbeat, refusal)
		if refusal == "" && synced && (regular || p.outdated(heartbeat)) || refusal != "" && regular && p.rivalExpired(ctx) {
			p.report(p.renew(ctx, heartbeat))
			if wait := p.untilConfirmed(); wait > 0 {
				confirmed.Reset(wait)
			}
		}
	}
}

// update updates the Claim by the heartbeat of the hub, and notifies the controllers that may write again. It returns why this cluster may not
// use its ID, like Refusal; last is the result before.
func (p *Presence) update(heartbeat *hubv1alpha1.Heartbeat, last string) string {
	refusal, waited := p.observe(heartbeat)
	if refusal != last {
		p.Log.Info("the permission to use the cluster ID has changed", "refusal", refusal)
	}
	if refusal != last || waited {
		p.Store.Refresh() // controllers wait for this permission
	}
	return refusal
}

// observe updates the Claim, and notifies the controllers that may write again. It returns why this cluster may not use its ID, and whether a
// controller has got another answer before.
func (p *Presence) observe(heartbeat *hubv1alpha1.Heartbeat) (refusal string, waited bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Claim.observe(heartbeat)
	current := p.permissionBy(heartbeat)
	if current.mayWrite && (p.denied || !p.mayWrite) {
		p.denied = false
		for _, notify := range p.notify {
			notify()
		}
	}
	p.mayWrite = current.mayWrite
	waited = p.refused && current.refusal == ""
	p.refused = p.refused && !waited
	return current.refusal, waited
}

// untilConfirmed returns the time until this process may write records; 0 if it may.
func (p *Presence) untilConfirmed() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.Claim.confirmed.Sub(p.Clock.Now()))
}

// outdated reports whether the hub has no local Heartbeat or that of another process, or the publication has changed since the last one
// was written.
func (p *Presence) outdated(heartbeat *hubv1alpha1.Heartbeat) bool {
	published, _ := p.publication()
	return heartbeat == nil || p.written.State != published.State || p.written.Listing != published.Listing || p.isReplaced(heartbeat)
}

// isReplaced reports whether the Heartbeat is that of a process with a higher term, which this one replaces at once. If several follow each
// other, it waits for its next regular Heartbeat.
func (p *Presence) isReplaced(heartbeat *hubv1alpha1.Heartbeat) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.Claim.contested {
		return false
	}
	if p.atOnce == nil {
		p.atOnce = rate.NewLimiter(rate.Every(p.Interval), contestBurst)
	}
	p.Log.Info("another process with the identity of this cluster has replaced the heartbeat; a copy of this cluster runs", "nonce", heartbeat.Spec.Nonce)
	return p.atOnce.AllowN(p.Clock.Now(), 1)
}

// publication returns the state of the publication and the number of services with local records. The publication is Partial until the
// controller publish has processed the last list of the hub, which may lack records.
func (p *Presence) publication() (publish.Publication, int) {
	services, listing := p.Store.LocalServices()
	published := p.Progress.Publication()
	if published.Listing != listing {
		published = publish.Publication{State: hubv1alpha1.PublicationPartial, Listing: published.Listing}
	}
	return published, services
}

// renew writes the Heartbeat once, with the version of the observed one. The deadline is the configured interval, so that a hub that does not
// answer does not block the processing of other members' heartbeats.
func (p *Presence) renew(ctx context.Context, observed *hubv1alpha1.Heartbeat) error {
	ctx, cancel := context.WithTimeout(ctx, p.Interval)
	defer cancel()
	term, err := p.replace(ctx, observed)
	if err != nil || term == 0 {
		return err
	}
	published, services := p.publication()
	desired := &hubv1alpha1.Heartbeat{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Cluster.HubNamespace(), Name: hubv1alpha1.HeartbeatName},
		Spec: hubv1alpha1.HeartbeatSpec{
			RenewTime:        metav1.NewMicroTime(p.Clock.Now()),
			ClusterUID:       p.ClusterUID,
			Nonce:            p.Claim.nonce,
			Term:             term,
			ContestedAt:      p.lastContest(observed),
			AgentVersion:     p.AgentVersion,
			IntervalSeconds:  int32(math.Ceil(p.interval.Seconds())),
			Services:         int32(services),
			Publication:      published.State,
			ServicesVersion:  published.Versions.Services,
			EndpointsVersion: published.Versions.Endpoints,
		},
	}
	written, err := apply.Do(ctx, p.Hub, plan.Heartbeat(desired, observed))
	switch {
	case errors.Is(err, apply.ErrStale):
		return nil // the watch has not delivered the last one yet, and will trigger another attempt
	case err == nil:
		p.written = published
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, heartbeat := range written {
		p.Claim.wrote(heartbeat, term)
	}
	return err
}

// replace prepares to write the Heartbeat, and returns its term: 0 if the observed one is that of another process, and this one does not
// hold the Lease of its cluster any more.
func (p *Presence) replace(ctx context.Context, observed *hubv1alpha1.Heartbeat) (int64, error) {
	p.mu.Lock()
	foreign := p.Claim.isForeign(observed)
	p.mu.Unlock()
	if foreign {
		if held, err := p.holdsLease(ctx); err != nil || !held {
			return 0, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Claim.contested {
		p.contests++
		p.contestedAt = new(metav1.NewMicroTime(p.Clock.Now()))
	}
	p.Claim.replace(observed, p.Clock.Now(), p.hasEnded)
	return p.Claim.next(observed), nil
}

// lastContest returns when another process with the identity of this cluster has replaced its heartbeat the last time: this process, or one
// before it, has observed that. It returns nil if none has.
func (p *Presence) lastContest(observed *hubv1alpha1.Heartbeat) *metav1.MicroTime {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.contestedAt == nil && observed != nil && observed.Spec.ClusterUID == p.ClusterUID {
		return observed.Spec.ContestedAt
	}
	return p.contestedAt
}

// report logs an error once as long as it stays the same.
func (p *Presence) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != p.logged && err != nil {
		p.Log.Error(err, "cannot write the heartbeat; retrying at the next interval")
	}
	p.logged = text
}
