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

// silence is that of another cluster that bears our ID, as the hub tells it: one heartbeat, answered to each of our questions
// since its beginning.
type silence struct {
	version      string
	since, asked time.Time
}

// Admitted reports whether this cluster may speak for its ID.
func (p *Presence) Admitted() bool { return p.Refusal() == "" }

// Refusal returns why this cluster may not speak for its ID, for people, and "" where it may: the hub knows no other cluster
// under it. Whoever takes an ID over has written its heartbeat over the other's first, so that the hub's order of writes, and
// no clock, says whose the ID is (spec K2).
func (p *Presence) Refusal() string { return p.refusal(p.Store.Heartbeat(p.Cluster)) }

// refusal is Refusal by the heartbeat under this cluster's ID. One that cannot be read is nobody's.
func (p *Presence) refusal(heartbeat *hubv1alpha1.Heartbeat) string {
	if heartbeat == nil || heartbeat.Spec.ClusterUID == "" || heartbeat.Spec.ClusterUID == p.ClusterUID {
		return ""
	}
	return fmt.Sprintf("another cluster (kube-system UID %s) is a member of the clusterset under the ID %q: "+
		"give one of the two another ID and let it join again, or wait until the other has been silent for %s",
		heartbeat.Spec.ClusterUID, p.Cluster, p.rivalGrace())
}

// rivalGrace is how long a rival must have been silent before this cluster takes the ID over.
func (p *Presence) rivalGrace() time.Duration {
	return max(p.Grace, liveness.GracePeriods*p.Store.HeartbeatInterval(p.Cluster))
}

// rivalExpired asks the hub for the rival's heartbeat, and reports whether it has been the same for so long that the ID may be
// taken over. A question without an answer, or a missed one, begins that anew: a rival that could not reach a hub that was
// away has all the time to renew its heartbeat when the hub is back.
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
	if heartbeat.ResourceVersion != p.silence.version || now.Sub(p.silence.asked) > 2*p.Interval {
		p.silence = silence{version: heartbeat.ResourceVersion, since: now}
	}
	p.silence.asked = now
	return now.Sub(p.silence.since) >= p.rivalGrace()
}
