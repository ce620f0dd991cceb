// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// pulseInterval is how often an agent sends a heartbeat by default.
const pulseInterval = 10 * time.Second

// pulse writes the heartbeats of a member for which the harness speaks, until the function that it returns is called,
// which returns what has gone wrong.
func pulse(ctx context.Context, m *member) (stop func() error, err error) {
	beat := &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: m.id.HubNamespace(), Name: hubv1alpha1.HeartbeatName}}
	beat.Spec = hubv1alpha1.HeartbeatSpec{RenewTime: metav1.NowMicro(), ClusterUID: "bench-" + string(m.id), Publication: hubv1alpha1.PublicationComplete}
	if err := m.remote.Create(ctx, beat); err != nil {
		return nil, fmt.Errorf("heartbeat of %s: %w", m.id, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- wait.PollUntilContextCancel(ctx, pulseInterval, false, func(ctx context.Context) (bool, error) {
			beat.Spec.RenewTime = metav1.NowMicro()
			return false, m.remote.Update(ctx, beat)
		})
	}()
	return func() error {
		cancel()
		if err := <-ended; !wait.Interrupted(err) && ctx.Err() == nil {
			return fmt.Errorf("heartbeat of %s: %w", m.id, err)
		}
		return nil
	}, nil
}

// publish writes the records of subjects as the agent of their cluster would, which does not run.
func publish(ctx context.Context, m *member, subjects []*subject) error {
	return each(ctx, setupWidth, subjects, func(ctx context.Context, s *subject) error {
		for _, record := range []client.Object{s.endpoints, s.record} {
			if err := createRecord(ctx, m.remote, record); err != nil {
				return fmt.Errorf("publish %s of %s: %w", s.service.Name, m.id, err)
			}
		}
		return nil
	})
}
