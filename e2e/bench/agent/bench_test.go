// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	m.Run()
}

// figures checks that there is a row for each metric, and that it has figures.
func (b *bench) figures(t *testing.T, metrics ...string) {
	t.Helper()
	var got []string
	for _, row := range b.rows {
		got = append(got, row.Metric)
		compared := !strings.HasPrefix(row.Target, "figure")
		if compared && (row.Tombolo <= 0 || row.Reference <= 0 || row.Ratio <= 0) {
			t.Errorf("a figure is missing: %+v", row)
		}
	}
	if diff := cmp.Diff(metrics, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// newTestPropagation returns a propagation whose Services are there, until the test ends.
func newTestPropagation(t *testing.T, b *bench) *propagationRun {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	w, err := b.world(ctx, 2, b.size, b.say)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	p, err := newPropagation(t.Context(), b, w)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// testSlowAgents: the floor and the agents come to figures, and agents that are held back come to no more than they can.
func (s *shared) testSlowAgents(t *testing.T) {
	b := s.newBench(t, 12)
	p := newTestPropagation(t, b)
	floor, err := p.floor(t.Context(), p.subjects, 4)
	if err != nil {
		t.Fatal(err)
	}
	usual, err := p.agents(t.Context(), agentWork{})
	if err != nil {
		t.Fatal(err)
	}
	b.delay = 500 * time.Millisecond // three writes at least follow each other in B, after one on the hub
	slow, err := p.agents(t.Context(), agentWork{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("services/s: floor %.2f, agents %.2f, slow agents %.2f", floor, usual, slow)
	if most := float64(b.size) / 2; slow <= 0 || slow > most {
		t.Errorf("agents that wait half a second before each of four writes come to %.2f services/s; at most %.2f can be", slow, most)
	}
	if floor <= 0 || usual <= 0 { // a stall may make either slower than any bound, so nothing else is asked of them
		t.Errorf("the floor comes to %.2f services/s, agents to %.2f", floor, usual)
	}
}

// testFloorFails: where the floor cannot write, the run fails at once and says why.
func (s *shared) testFloorFails(t *testing.T) {
	b := s.newBench(t, 1)
	p := newTestPropagation(t, b)
	p.subjects[0].endpoints.Namespace = "member-b" // where A may write nothing
	if _, err := p.floor(t.Context(), p.subjects, 1); err == nil || !strings.Contains(err.Error(), "the floor: ") || !errors.Is(err, context.Canceled) {
		t.Errorf("the floor fails with: %v", err)
	}
}

// testBackground: what changes in the background is, once it has stopped, as the API server has it, so that it can be changed again.
func (s *shared) testBackground(t *testing.T) {
	p := newTestPropagation(t, s.newBench(t, 4))
	a := p.w.members[0]
	c, err := newChanger(t.Context(), a, p.subjects)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		before := a.changes.Load()
		stop := c.background(t.Context(), 1000)
		err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return a.changes.Load() >= before+8, nil
		})
		if made, stopErr := stop(); err != nil || stopErr != nil || made <= 0 {
			t.Fatalf("%.1f changes a second, %v, %v", made, err, stopErr)
		}
		for i := range c.slices {
			if _, err := c.change(t.Context(), i, func(string) {}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (s *shared) testFanout(t *testing.T) {
	b := s.newBench(t, 2)
	if err := fanout(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	b.figures(t,
		"requests on the hub per change, 2 members",
		"requests in the importing cluster with most, per change, 2 members",
		"reads anywhere per change, 2 members",
		"writes on the hub for a burst of 20 changes of one slice",
		"writes for 20 updates of fields that nothing imports, and heartbeats of all",
		"CPU of the agent in B per change, ms: 100 services to 20",
	)
	if row := b.rows[0]; row.Tombolo > 1.5 { // now and then an agent reads what its watch has not brought back yet
		t.Errorf("a change of endpoints leads to %.2f requests on the hub", row.Tombolo)
	}
}

func (s *shared) testLatency(t *testing.T) {
	b := s.newBench(t, 5)
	if err := latency(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, what := range []string{"change to slice in B, quiet", "change to slice in B, busy", "export to import in B, quiet"} {
		for _, q := range []string{"p50", "p99", "max"} {
			want = append(want, what+", "+q+", ms")
		}
	}
	b.figures(t, append(want, "other changes a second where it is busy; reference: wanted")...)
}

func (s *shared) testRestart(t *testing.T) {
	b := s.newBench(t, 10)
	if err := restart(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	b.figures(t,
		"restart with 10 imported slices until in sync, s; reference: to list and decode the same",
		"the same on its own, s",
		"writes after the restart, besides the change",
		"change made meanwhile to slice in B, ms after the caches' sync",
		"start to first reconcile, s",
		"idle CPU with 10 services, % of a core",
	)
	if row := b.rows[2]; row.Tombolo != 0 {
		t.Errorf("a restart leads to %v writes", row.Tombolo)
	}
	if row := b.rows[4]; row.Tombolo <= 0 {
		t.Errorf("%v s from the start to the first reconcile", row.Tombolo)
	}
}

// TestFloorTooLow: a machine on which the floor is low is refused, unless any will do.
func TestFloorTooLow(t *testing.T) {
	usual := []float64{oneAtATime, tenInFlight}
	b := &bench{say: t.Logf}
	for name, c := range map[string]struct {
		share   float64
		anyhow  bool
		refused bool
	}{
		"as usual":          {share: 1},
		"just fast enough":  {share: leastOfFloor},
		"too slow":          {share: leastOfFloor - 0.01, refused: true},
		"too slow, anyhow":  {share: leastOfFloor - 0.01, anyhow: true},
		"much faster":       {share: 3},
		"far too slow":      {share: 0.01, refused: true},
		"far too slow, any": {share: 0.01, anyhow: true},
	} {
		b.anyhow = c.anyhow
		for i, width := range []int{1, 10} {
			if err := b.judge(width, c.share*usual[i], usual[i]); (err != nil) != c.refused {
				t.Errorf("%s, %d in flight: %v", name, width, err)
			}
		}
	}
}

func TestParsePS(t *testing.T) {
	for line, want := range map[string]usage{
		"  1024 00:02\n": {cpu: 2 * time.Second, resident: 1 << 20},
		"2048 1:02.50":   {cpu: 62*time.Second + 500*time.Millisecond, resident: 2 << 20},
		"1 01:02:03":     {cpu: time.Hour + 2*time.Minute + 3*time.Second, resident: 1 << 10},
		"1 2-01:00:00":   {cpu: 49 * time.Hour, resident: 1 << 10},
	} {
		if got, err := parsePS(line); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", line, got, err, want)
		}
	}
	for _, line := range []string{"", "1024", "x 00:02", "1 x", "1 1-x", "1 00:02 3"} {
		if got, err := parsePS(line); err == nil {
			t.Errorf("%q is read as %+v", line, got)
		}
	}
}

// TestUsage: this process has used the machine.
func TestUsage(t *testing.T) {
	got, err := usageOf(t.Context(), os.Getpid())
	if err != nil || got.resident < 1<<20 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := usageOf(t.Context(), 1<<30); err == nil {
		t.Error("a process that does not exist has used something")
	}
}

func TestRequests(t *testing.T) {
	r := requests{}
	r.note("a", []lab.Requests{
		{Resource: "endpointslices", Verb: "PUT", Code: "200", Count: 3},
		{Resource: "endpointslices", Verb: "PUT", Code: "409", Count: 2},
		{Resource: "serviceimports/status", Verb: "PUT", Code: "200", Count: 1},
		{Resource: "endpointslices", Verb: "WATCH", Code: "200", Count: 7},
		{Resource: "leases", Verb: "PUT", Code: "200", Count: 9},
	})
	if diff := cmp.Diff("a PUT endpointslices 5, a PUT serviceimports/status 1", r.String()); diff != "" {
		t.Error(diff)
	}
	earlier := requests{{"a", "PUT", "endpointslices"}: 4}
	if got := r.since(earlier, "a").String(); got != "a PUT endpointslices 1, a PUT serviceimports/status 1" {
		t.Error(got)
	}
	if got := r.since(nil, "b").total(anything); got != 0 {
		t.Error(got)
	}
}
