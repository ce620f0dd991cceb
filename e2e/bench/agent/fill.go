// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
)

// stages are the shares of all services after whose import the agent's memory is looked at: 25,000, 100,000 and 250,000
// endpoints of the full size.
var stages = []float64{0.1, 0.4, 1}

// mostPerEndpoint is how much memory an imported endpoint may take, in KB.
const mostPerEndpoint = 0.6

// fillTimeout bounds the import of a stage.
const fillTimeout = 15 * time.Minute

// fill has the services imported, stage by stage, and measures the agent's memory after each.
func (r *scaleRun) fill(ctx context.Context) error {
	idle, err := r.agent.settledMemory(ctx, r.settledFor())
	if err != nil {
		return err
	}
	r.say("the agent has %.1f MB when idle", megabytes(idle))
	memory := report.Curve{Name: "resident", Points: []report.Point{{X: 0, Y: megabytes(idle)}}}
	x := &mixer{speakers: r.speakers, addresses: map[*member]int{}}
	for _, s := range stages {
		first := len(r.services)
		for i := first; i < int(s*float64(r.size)); i++ {
			r.services = append(r.services, x.newMixed(i))
		}
		began := time.Now()
		if err := publishMixed(ctx, r.services[first:]); err != nil {
			return err
		}
		r.say("%d services with %d endpoints are on the hub after %.0f s", len(r.services), endpointsOf(r.services), time.Since(began).Seconds())
		if err := r.awaitImported(ctx); err != nil {
			return err
		}
		r.say("they are imported after %.0f s", time.Since(began).Seconds())
		now, err := r.agent.settledMemory(ctx, r.settledFor())
		if err != nil {
			return err
		}
		r.say("the agent has %.1f MB", megabytes(now))
		memory.Points = append(memory.Points, report.Point{X: float64(endpointsOf(r.services)), Y: megabytes(now)})
		each := float64(now-idle) / float64(endpointsOf(r.services)) / 1e3
		r.rows = append(r.rows, report.Within(fmt.Sprintf("memory above idle per imported endpoint, %d of them, KB", endpointsOf(r.services)), []float64{each}, report.AtMost(mostPerEndpoint)))
	}
	bound := report.Curve{Name: fmt.Sprintf("%.1f KB an endpoint above idle", mostPerEndpoint)}
	for _, p := range memory.Points {
		bound.Points = append(bound.Points, report.Point{X: p.X, Y: megabytes(idle) + mostPerEndpoint*p.X/1e3})
	}
	return r.plot("memory", report.Plot{Title: "Memory of the agent over imported endpoints", X: "endpoints", Y: "MB", Curves: []report.Curve{memory, bound}})
}

// awaitImported returns when all services have been imported and the agent has nothing more to do.
func (r *scaleRun) awaitImported(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready, want := map[string]bool{}, len(r.services) // the feed may end after this: it must not look at r
	done := make(chan struct{})
	_, err := openFeed(ctx, r.importer.kube, &mcsv1beta1.ServiceImportList{}, namespace, func(o client.Object) {
		i := o.(*mcsv1beta1.ServiceImport)
		if len(ready) == want || !meta.IsStatusConditionTrue(i.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)) {
			return
		}
		if ready[i.Name] = true; len(ready) == want {
			close(done)
		}
	})
	if err != nil {
		return err
	}
	bounded, stop := context.WithTimeout(ctx, fillTimeout)
	defer stop()
	select {
	case <-done:
	case <-bounded.Done():
		return fmt.Errorf("not all of %d services have been imported within %s: %w", len(r.services), fillTimeout, bounded.Err())
	}
	return r.agent.awaitQuiet(ctx)
}

// awaitQuiet returns when the agent has nothing more to do: twice in a row nothing waits and nobody works.
func (a *agentProcess) awaitQuiet(ctx context.Context) error {
	quiet := 0
	err := wait.PollUntilContextTimeout(ctx, 2*metricsInterval, roundTimeout, true, func(ctx context.Context) (bool, error) {
		waiting, err := a.samples(ctx, "workqueue_depth")
		if err != nil {
			return false, err
		}
		busy, err := a.samples(ctx, "controller_runtime_active_workers")
		quiet++
		if waiting+busy > 0 {
			quiet = 0
		}
		return quiet == 2, err
	})
	if err != nil {
		return fmt.Errorf("the agent of %s is busy: %w\nIts log ends:\n%s", a.id, err, a.logTail())
	}
	return nil
}
