// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// heartbeatInterval is the agents' default.
const heartbeatInterval = 10 * time.Second

// sendHeartbeats writes the heartbeats of members that have no agent, one after the other, each once in an interval, until stop, which
// returns its error.
func sendHeartbeats(ctx context.Context, members []*member, interval time.Duration) (stop func() error, err error) {
	if len(members) == 0 {
		return func() error { return nil }, nil
	}
	heartbeats := make([]*hubv1alpha1.Heartbeat, len(members))
	for i, m := range members {
		heartbeats[i] = &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: m.id.HubNamespace(), Name: hubv1alpha1.HeartbeatName}}
		heartbeats[i].Spec = hubv1alpha1.HeartbeatSpec{
			RenewTime: metav1.NowMicro(), ClusterUID: "bench-" + string(m.id), Publication: hubv1alpha1.PublicationComplete,
			IntervalSeconds: int32(interval.Seconds()),
		}
		if err := m.remote.Create(ctx, heartbeats[i]); err != nil {
			return nil, fmt.Errorf("heartbeat of %s: %w", m.id, err)
		}
	}
	stopChanges := startChanges(ctx, float64(len(members))/interval.Seconds(), func(ctx context.Context, i int) error {
		i %= len(members)
		heartbeats[i].Spec.RenewTime = metav1.NowMicro()
		if err := members[i].remote.Update(ctx, heartbeats[i]); err != nil {
			return fmt.Errorf("heartbeat of %s: %w", members[i].id, err)
		}
		return nil
	})
	return func() error {
		_, err := stopChanges()
		return err
	}, nil
}
