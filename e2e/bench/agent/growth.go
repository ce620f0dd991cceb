// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// growth measures whether the agents' work for a change depends on the number of services: the CPU time that the agent
// of the second member takes, with few and with many.
func (r *fanoutRun) growth(ctx context.Context, w *world, running agents) error {
	few, err := r.work(ctx, w, running[1])
	if err != nil {
		return err
	}
	r.say("%d services instead of %d", len(r.subjects), fewServices)
	if _, err := r.exportAll(ctx, w, r.subjects[fewServices:]); err != nil {
		return err
	}
	many, err := r.work(ctx, w, running[1])
	if err != nil {
		return err
	}
	r.rows = append(r.rows, report.Compare(fmt.Sprintf("CPU of the agent in B per change, ms: %d services to %d", len(r.subjects), fewServices), many, few, report.AtMost(leastGrowth)))
	return nil
}

// work returns the CPU time per change, in milliseconds, of each round.
func (r *fanoutRun) work(ctx context.Context, w *world, a *agentProcess) ([]float64, error) {
	var result []float64
	for range r.rounds {
		_, c, seen, stop, err := r.prepare(ctx, w)
		if err != nil {
			return nil, err
		}
		before, err := usageOf(ctx, a.cmd.Process.Pid)
		for i := 0; err == nil && i < r.changes; i++ {
			err = changeSeen(ctx, c, i%fewServices, seen)
		}
		stop()
		if err != nil {
			return nil, err
		}
		after, err := usageOf(ctx, a.cmd.Process.Pid)
		if err != nil {
			return nil, err
		}
		result = append(result, milliseconds(after.cpu-before.cpu)/float64(r.changes))
	}
	return result, nil
}

// nextHeartbeats returns when each member has sent one more heartbeat.
func nextHeartbeats(ctx context.Context, w *world) error {
	versions := map[string]string{}
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		all := true
		for _, m := range w.members {
			heartbeat := &hubv1alpha1.Heartbeat{}
			if err := w.hubKube.Get(ctx, client.ObjectKey{Namespace: m.id.HubNamespace(), Name: hubv1alpha1.HeartbeatName}, heartbeat); err != nil {
				return false, err
			}
			first, known := versions[string(m.id)]
			if !known {
				versions[string(m.id)] = heartbeat.ResourceVersion
			}
			all = all && known && first != heartbeat.ResourceVersion
		}
		return all, nil
	})
}
