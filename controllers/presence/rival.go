// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/liveness"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// silence is the time for which another cluster with our ID has not renewed its heartbeat: each read since the first has returned the
// same version. The version is empty while the hub has no heartbeat.
type silence struct {
	version         string
	since, lastRead time.Time
}

// Lease is the Lease of the agents of this cluster, which this process holds.
type Lease interface {
	// Held reads whether this process holds the Lease.
	Held(ctx context.Context) (bool, error)
	// Ended reports whether the process with a nonce is known to have ended.
	Ended(nonce string) bool
}

// Allowed reports whether this cluster may use its ID.
func (p *Presence) Allowed() bool { return p.Refusal() == "" }

// MayWrite reports whether this cluster may write records on the hub: the Heartbeat there is that of this process.
func (p *Presence) MayWrite() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	mayWrite := p.permissionBy(p.Store.Heartbeat(p.Cluster)).mayWrite
	p.denied = p.denied || !mayWrite
	return mayWrite
}

// OnMayWrite calls notify, which must not block, each time after which MayWrite is true and was false, also if it is true now.
func (p *Presence) OnMayWrite(notify func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notify = append(p.notify, notify)
	if p.mayWrite { // the others were notified before
		notify()
	}
}

// Refusal returns a message why this cluster may not use its ID, and "" if it may. A cluster that takes an ID over replaces the other
// cluster's heartbeat first, so that the order of writes on the hub decides, and not a clock (spec K2).
func (p *Presence) Refusal() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	refusal := p.permissionBy(p.Store.Heartbeat(p.Cluster)).refusal
	p.refused = p.refused || refusal != ""
	return refusal
}

// permission is what this cluster may do.
type permission struct {
	refusal  string
	mayWrite bool
}

// permissionBy returns what this cluster may do while the hub has this heartbeat. The caller holds the lock.
func (p *Presence) permissionBy(heartbeat *hubv1alpha1.Heartbeat) permission {
	refusal := p.refusal(heartbeat, p.Claim.rival)
	return permission{refusal, refusal == "" && p.Claim.mayWrite(heartbeat, p.Clock.Now())}
}

// Contests returns how often another process with the identity of this cluster has replaced its heartbeat, and this one has continued.
func (p *Presence) Contests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.contests
}

// refusal is Refusal for a heartbeat with this cluster's ID, and the nonce of the process to which this one yields, if it does. A heartbeat
// that cannot be decoded belongs to no cluster.
func (p *Presence) refusal(heartbeat *hubv1alpha1.Heartbeat, rival string) string {
	if heartbeat != nil && heartbeat.Spec.ClusterUID != "" && heartbeat.Spec.ClusterUID != p.ClusterUID {
		return fmt.Sprintf("another cluster (kube-system UID %s) is a member of the clusterset under the ID %q: "+
			"give one of the two another ID and let it join again, or wait until the other has been silent for %s",
			heartbeat.Spec.ClusterUID, p.Cluster, p.rivalGrace())
	}
	if rival == "" {
		return ""
	}
	return fmt.Sprintf("another agent with the identity of this cluster (ID %q, kube-system UID %s) renews the heartbeat, so one of two clusters is a copy "+
		"of the other, and this one publishes nothing: if this one is the copy, run \"kubectl clusterset leave --from member\" in it; "+
		"if the other one is, stop its agent, and this one continues when the other has been silent for %s",
		p.Cluster, p.ClusterUID, p.rivalGrace())
}

// holdsLease reports whether this process may replace the heartbeat of another one: a process that was suspended may have lost the Lease
// of its cluster to another replica without knowing.
func (p *Presence) holdsLease(ctx context.Context) (bool, error) {
	if p.Lease == nil {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.Interval)
	defer cancel()
	return p.Lease.Held(ctx)
}

// hasEnded reports whether the process with a nonce is known to have ended.
func (p *Presence) hasEnded(nonce string) bool { return p.Lease != nil && p.Lease.Ended(nonce) }

// rivalGrace returns how long the other cluster must be silent before this one takes the ID over.
func (p *Presence) rivalGrace() time.Duration {
	return max(p.Grace, liveness.GracePeriods*p.Store.HeartbeatInterval(p.Cluster))
}

// rivalExpired reads the other cluster's heartbeat from the hub, and reports whether it was not renewed for the grace period. A failed
// or missed read restarts the period: after an outage of the hub, the other cluster gets the whole period to renew its heartbeat.
func (p *Presence) rivalExpired(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, p.Interval)
	defer cancel()
	heartbeat := &hubv1alpha1.Heartbeat{}
	err := p.Live.Get(ctx, client.ObjectKey{Namespace: p.Cluster.HubNamespace(), Name: hubv1alpha1.HeartbeatName}, heartbeat)
	now := p.Clock.Now()
	if err != nil && !apierrors.IsNotFound(err) {
		p.silence = silence{}
		return false
	}
	if heartbeat.ResourceVersion != p.silence.version || p.silence.since.IsZero() || now.Sub(p.silence.lastRead) > 2*p.currentInterval() {
		p.silence = silence{version: heartbeat.ResourceVersion, since: now}
	}
	p.silence.lastRead = now
	return now.Sub(p.silence.since) >= p.rivalGrace()
}
