// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// lastHeartbeat describes the last heartbeat of a member, by the hub's clock.
type lastHeartbeat struct {
	age time.Duration
	// interval is the time between its heartbeats.
	interval time.Duration
	// received is false if the hub has never received one.
	received bool
	// unknown is true if the hub could not be read.
	unknown bool
}

// defaultInterval is the heartbeat interval if the Heartbeat names none.
const defaultInterval = 10 * time.Second

func (h *Hub) lastHeartbeat(id clusterset.ClusterID) lastHeartbeat {
	age, received := h.Silence(id)
	return lastHeartbeat{age, cmp.Or(h.Records.HeartbeatInterval(id), defaultInterval), received, !h.IsRead()}
}

// state returns the State of the member.
func (l lastHeartbeat) state() State {
	switch {
	case l.unknown:
		return StateUnknown
	case !l.received:
		return StateNeverConnected
	case l.age > liveness.GracePeriods*l.interval:
		return StateSilent
	}
	return StateConnected
}

// Connected returns the members that are not silent by the hub's clock, with their heartbeat intervals.
func (h *Hub) Connected() map[clusterset.ClusterID]time.Duration {
	result := map[clusterset.ClusterID]time.Duration{}
	for _, id := range h.Records.Members() {
		if last := h.lastHeartbeat(id); last.state() == StateConnected {
			result[id] = last.interval
		}
	}
	return result
}

// silentSince returns the members that are not connected, and were at an earlier time.
func (h *Hub) silentSince(before *Hub) []clusterset.ClusterID {
	var lost []clusterset.ClusterID
	connected := h.Connected()
	for id := range before.Connected() {
		if _, is := connected[id]; !is {
			lost = append(lost, id)
		}
	}
	return lost
}

// isBehind reports whether one of these members has a later heartbeat than the one that is known.
func (h *Hub) isBehind(ids []clusterset.ClusterID, live []hubv1alpha1.Heartbeat) bool {
	return slices.ContainsFunc(live, func(beat hubv1alpha1.Heartbeat) bool {
		id, ok := clusterset.ClusterIDOfHubNamespace(beat.Namespace)
		return ok && slices.Contains(ids, id) && hub.RenewedAt(&beat).After(h.Renewed[id])
	})
}

// String describes the age of the heartbeat.
func (l lastHeartbeat) String() string {
	switch {
	case l.unknown:
		return "its last heartbeat is not known, because the hub could not be read"
	case !l.received:
		return "its agent has sent no heartbeat yet"
	}
	return fmt.Sprintf("the last heartbeat of its agent was %s ago", l.age.Round(time.Second))
}

// untilSilence returns the time after which the first of the connected members is silent, unless its heartbeat was renewed.
func (h *Hub) untilSilence() time.Duration {
	result := time.Hour // any member that connects is a change
	for _, id := range h.Records.Members() {
		if last := h.lastHeartbeat(id); last.state() == StateConnected {
			result = min(result, liveness.GracePeriods*last.interval-last.age)
		}
	}
	return result
}

// isRenewal reports whether a Heartbeat differs only in the times of its renewals, and these are so close to each other that the member
// was not silent between them, even if the second one was received late.
func isRenewal(before, after any) bool {
	if was, ok := before.(*corev1.ConfigMap); ok {
		is, ok := after.(*corev1.ConfigMap)
		return ok && maps.Equal(was.Data, is.Data)
	}
	from, ok := before.(*hubv1alpha1.Heartbeat)
	if !ok {
		return false
	}
	to, ok := after.(*hubv1alpha1.Heartbeat)
	if !ok {
		return false
	}
	interval := cmp.Or(time.Duration(to.Spec.IntervalSeconds)*time.Second, defaultInterval)
	received := hub.RenewedAt(to)
	if received.IsZero() || received.Sub(hub.RenewedAt(from)) > liveness.GracePeriods*interval/2 {
		return false
	}
	was := from.Spec
	was.RenewTime = to.Spec.RenewTime
	return equality.Semantic.DeepEqual(was, to.Spec)
}
