// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
)

// silence is the time for which another cluster with our ID has not renewed its heartbeat: each read since the first has returned the
// same version.
type silence struct {
	version         string
	since, lastRead time.Time
}

// Allowed reports whether this cluster may use its ID.
func (p *Presence) Allowed() bool { return p.Refusal() == "" }

// Refusal returns a message why this cluster may not use its ID, and "" if it may. A cluster that takes an ID over replaces the other
// cluster's heartbeat first, so that the order of writes on the hub decides, and not a clock (spec K2).
func (p *Presence) Refusal() string { return p.refusal(p.Store.Heartbeat(p.Cluster)) }

// refusal is Refusal for a heartbeat with this cluster's ID. A heartbeat that cannot be decoded belongs to no cluster.
func (p *Presence) refusal(heartbeat *hubv1alpha1.Heartbeat) string {
	if heartbeat == nil || heartbeat.Spec.ClusterUID == "" || heartbeat.Spec.ClusterUID == p.ClusterUID {
		return ""
	}
	return fmt.Sprintf("another cluster (kube-system UID %s) is a member of the clusterset under the ID %q: "+
		"give one of the two another ID and let it join again, or wait until the other has been silent for %s",
		heartbeat.Spec.ClusterUID, p.Cluster, p.rivalGrace())
}

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
	if err != nil {
		p.silence = silence{}
		return false
	}
	if heartbeat.ResourceVersion != p.silence.version || now.Sub(p.silence.lastRead) > 2*p.currentInterval() {
		p.silence = silence{version: heartbeat.ResourceVersion, since: now}
	}
	p.silence.lastRead = now
	return now.Sub(p.silence.since) >= p.rivalGrace()
}
