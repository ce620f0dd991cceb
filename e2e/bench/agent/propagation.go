// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/tombolo-mcs/tombolo/e2e/bench/agent/world"
	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
)

// propagation measures how many services per second become complete in two clusters, of many that are exported in one of
// them at once.
func propagation(ctx context.Context, b *bench, w *world.World) error {
	services, err := world.CreateServices(ctx, b.log, w.Members[0], b.size)
	if err != nil {
		return err
	}
	width, err := b.bestWidth(ctx, w, services)
	if err != nil {
		return err
	}
	for round := range b.rounds {
		bare, err := exportBare(ctx, w, services, width)
		if err != nil {
			return err
		}
		agents, err := b.exportWithAgents(ctx, w, services)
		if err != nil {
			return err
		}
		b.log("round %d of %d: agents %.1f services/s, baseline %.1f", round+1, b.rounds, agents, bare)
		b.Add("Propagation", baseline, "services/s", bare)
		b.Add("Propagation", agent, "services/s", agents)
	}
	b.Compare("Propagation", "services/s", agent, baseline, results.AtLeast(0.8))
	return nil
}

// bestWidth returns the number of writes in flight with which the baseline is fastest.
func (b *bench) bestWidth(ctx context.Context, w *world.World, services []*world.TestService) (int, error) {
	few := services[:min(len(services), max(20, b.size/5))]
	if _, err := exportBare(ctx, w, few, 1); err != nil { // API servers are slower at first
		return 0, err
	}
	best, most := 0, 0.0
	for _, width := range []int{1, 4, 10, 16, 32} {
		rate, err := exportBare(ctx, w, few, width)
		if err != nil {
			return 0, err
		}
		b.log("baseline with %d writes in flight: %.1f services/s", width, rate)
		if rate > most {
			best, most = width, rate
		}
	}
	return best, nil
}

// exportBare returns how many services per second are complete with the bare client.
func exportBare(ctx context.Context, w *world.World, services []*world.TestService, width int) (float64, error) {
	working, stop, err := world.StartBare(ctx, w, services, width)
	if err != nil {
		return 0, err
	}
	rate, err := world.ExportAll(working, w, services)
	return rate, errors.Join(err, stop(), w.CleanUp(ctx))
}

// exportWithAgents returns how many services per second are complete with agents, whose CPU it profiles if asked to.
func (b *bench) exportWithAgents(ctx context.Context, w *world.World, services []*world.TestService) (float64, error) {
	stop, err := w.StartAgents(ctx, b.program)
	if err != nil {
		return 0, err
	}
	before, err := world.MeasureCPU(w)
	if err != nil {
		return 0, errors.Join(err, stop())
	}
	group, groupCtx := errgroup.WithContext(ctx)
	if b.cpuProfile {
		for _, m := range w.Members {
			group.Go(func() error {
				return m.Agent.WriteProfile(groupCtx, "profile?seconds=10", filepath.Join(outFolder, fmt.Sprintf("bench-agent-%s.pprof", m.ID)))
			})
		}
	}
	rate, err := world.ExportAll(ctx, w, services)
	after, cpuErr := world.MeasureCPU(w)
	b.log("CPU, percent: %v", after.Since(before).Percent())
	return rate, errors.Join(err, cpuErr, group.Wait(), stop(), w.CleanUp(ctx))
}
