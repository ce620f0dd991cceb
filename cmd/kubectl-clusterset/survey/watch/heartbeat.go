// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// silentSince returns the members that are not connected, and were before.
func silentSince(before, h *survey.Hub) []clusterset.ClusterID {
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
func isBehind(h *survey.Hub, ids []clusterset.ClusterID, live []hubv1alpha1.Heartbeat) bool {
	return slices.ContainsFunc(live, func(beat hubv1alpha1.Heartbeat) bool {
		id, ok := clusterset.ClusterIDOfHubNamespace(beat.Namespace)
		return ok && slices.Contains(ids, id) && hub.RenewedAt(&beat).After(h.Renewed[id])
	})
}

// untilSilence returns the time after which the first of the connected members is silent, unless its heartbeat was renewed.
func untilSilence(h *survey.Hub) time.Duration {
	result := time.Hour // any member that connects is a change
	for _, id := range h.Records.Members() {
		if last := h.LastHeartbeat(id); last.State() == survey.StateConnected {
			result = min(result, liveness.GracePeriods*last.Interval-last.Age)
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
	interval := cmp.Or(time.Duration(to.Spec.IntervalSeconds)*time.Second, survey.DefaultInterval)
	received := hub.RenewedAt(to)
	if received.IsZero() || received.Sub(hub.RenewedAt(from)) > liveness.GracePeriods*interval/2 {
		return false
	}
	was := from.Spec
	was.RenewTime = to.Spec.RenewTime
	return equality.Semantic.DeepEqual(was, to.Spec)
}
