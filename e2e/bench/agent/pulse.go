// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pulseInterval is how often an agent sends a heartbeat by default.
const pulseInterval = 10 * time.Second

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
