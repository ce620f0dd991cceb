// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/bench/agent/world"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestParts runs each part with a small size, one after the other on the same API servers, whose start takes longer than
// the parts.
func TestParts(t *testing.T) {
	if os.Getenv("BENCH_CHECK") == "" {
		t.Skip("make bench-check runs it")
	}
	program := filepath.Join(t.TempDir(), "tombolo-agent")
	lab.Must(t, lab.Build(t.Context(), "../../..", "tombolo-agent", program))
	all, err := world.New(t.Context(), 2, t.Logf)
	lab.Must(t, err)
	t.Cleanup(func() { lab.Must(t, all.Lab.Close()) })
	for _, part := range []struct {
		name          string
		size, members int
		test          func(*testing.T, *bench, *world.World)
	}{
		{"slow agents", 12, 2, testSlowAgents},
		{"baseline fails", 1, 2, testBaselineFails},
		{"changes", 4, 2, testChanges},
		{"fanout", 2, 2, testFanout},
		{"latency", 5, 2, testLatency},
		{"restart", 10, 2, testRestart},
		{"reconnect", 6, 0, testReconnect},
		{"members", 6, 0, testMembers},
		{"scale", 40, 1, testScale},
		{"networks", 4, 2, testNetworks},
		{"policy", 100, 2, testPolicy},
	} {
		t.Run(part.name, func(t *testing.T) {
			w := *all
			w.Members = all.Members[:part.members]
			b := &bench{settings: settings{size: part.size, rounds: 1, program: program, services: 20, rate: 10, stores: 4}, log: t.Logf}
			part.test(t, b, &w)
			lab.Must(t, clearAll(t.Context(), all))
		})
	}
}

// clearAll deletes everything that a part has written. The members that it has admitted remain, without records.
func clearAll(ctx context.Context, w *world.World) error {
	err := w.CleanUp(ctx)
	for _, m := range w.Members {
		for _, kind := range []client.Object{&corev1.Service{}, &discoveryv1.EndpointSlice{}} {
			err = errors.Join(err, m.Admin.DeleteAllOf(ctx, kind, client.InNamespace(world.Namespace)))
		}
	}
	admitted := &hubv1alpha1.MemberList{}
	err = errors.Join(err, w.HubClient.List(ctx, admitted))
	for _, m := range admitted.Items {
		for _, kind := range []client.Object{&hubv1alpha1.PublishedService{}, &hubv1alpha1.PublishedEndpoints{}, &hubv1alpha1.Heartbeat{}} {
			err = errors.Join(err, w.HubClient.DeleteAllOf(ctx, kind, client.InNamespace(m.Namespace)))
		}
	}
	return err
}

// check runs a part, and checks that each figure with a target was measured. It prints the targets.
func (b *bench) check(t *testing.T, w *world.World, run func(context.Context, *bench, *world.World) error) {
	t.Helper()
	lab.Must(t, run(t.Context(), b, w))
	var table strings.Builder
	lab.Must(t, b.WriteTargets(&table))
	t.Logf("\n%s", table.String())
	if strings.Contains(table.String(), "NaN") {
		t.Error("a figure is missing")
	}
}

// positive checks that figures were measured and are more than 0.
func (b *bench) positive(t *testing.T, name, who string, units ...string) {
	t.Helper()
	for _, unit := range units {
		if got := b.Median(name, who, unit); math.IsNaN(got) || got <= 0 {
			t.Errorf("%s of %s: %v %s", name, who, got, unit)
		}
	}
}

// testSlowAgents: the baseline and the agents have results, and agents of which one does not run for a while are slower by that time.
func testSlowAgents(t *testing.T, b *bench, w *world.World) {
	services, err := world.CreateServices(t.Context(), b.log, w.Members[0], b.size)
	lab.Must(t, err)
	bare, err := exportBare(t.Context(), w, services, 4)
	lab.Must(t, err)
	usual, err := b.exportWithAgents(t.Context(), w, services)
	lab.Must(t, err)
	const delay = 5 * time.Second
	stop, err := w.StartAgents(t.Context(), b.program)
	lab.Must(t, err)
	importer := w.Members[1].Agent
	lab.Must(t, importer.Freeze())
	time.AfterFunc(delay, func() {
		if err := importer.Thaw(); err != nil {
			t.Error(err)
		}
	})
	slow, err := world.ExportAll(t.Context(), w, services)
	lab.Must(t, errors.Join(err, stop(), w.CleanUp(t.Context())))
	t.Logf("services/s: baseline %.2f, agents %.2f, slow agents %.2f", bare, usual, slow)
	if most := float64(b.size) / (delay.Seconds() - 2); slow <= 0 || slow > most { // the watches are opened before the measurement begins
		t.Errorf("with an agent that does not run for %s, %.2f services/s are measured, want at most %.2f", delay, slow, most)
	}
	if bare <= 0 || usual <= 0 { // a busy machine may make either slower than any bound
		t.Errorf("baseline %.2f services/s, agents %.2f", bare, usual)
	}
}

// testBaselineFails: if the baseline cannot write, the run fails at once with the reason.
func testBaselineFails(t *testing.T, b *bench, w *world.World) {
	services, err := world.CreateServices(t.Context(), b.log, w.Members[0], b.size)
	lab.Must(t, err)
	services[0].Endpoints.Namespace = "member-b" // in which A must not write
	if _, err := exportBare(t.Context(), w, services, 1); err == nil || !strings.Contains(err.Error(), "the baseline: ") || !errors.Is(err, context.Canceled) {
		t.Errorf("the baseline fails with: %v", err)
	}
}

// testChanges: slices can be changed again after changes at a steady rate have stopped, without a conflict.
func testChanges(t *testing.T, b *bench, w *world.World) {
	a := w.Members[0]
	services, err := world.CreateServices(t.Context(), b.log, a, b.size)
	lab.Must(t, err)
	slices, err := world.ReadSlices(t.Context(), a, services)
	lab.Must(t, err)
	for range 10 {
		before := a.Changes.Load()
		stop := world.StartChanges(t.Context(), 1000, slices.Change)
		lab.Eventually(t, time.Minute, func(context.Context) error {
			if a.Changes.Load() < before+8 {
				return errors.New("too few changes")
			}
			return nil
		})
		if made, err := stop(); err != nil || made <= 0 {
			t.Fatalf("%.1f changes per second, %v", made, err)
		}
		for i := range services {
			lab.Must(t, slices.Change(t.Context(), i))
		}
	}
}

func testFanout(t *testing.T, b *bench, w *world.World) {
	b.check(t, w, fanout)
	if got := b.Median("Fanout/members=2", agent, "hub-requests/change"); got > 1.5 { // sometimes a watch returns a write too late, and the agent reads
		t.Errorf("%.2f requests on the hub for a change of endpoints", got)
	}
	b.positive(t, "Fanout/members=2", agent, "hub-requests/change", "most-member-requests/change")
	b.positive(t, "Burst/changes=20", agent, "hub-writes")
}

func testLatency(t *testing.T, b *bench, w *world.World) {
	b.check(t, w, latency)
	for _, who := range []string{agent, baseline} {
		for _, name := range []string{latencyIdle, latencyBusy, latencyExport} {
			b.positive(t, name, who, "p50-ms", "p99-ms", "max-ms")
		}
	}
}

func testRestart(t *testing.T, b *bench, w *world.World) {
	b.check(t, w, restart)
	b.positive(t, "Restart", agent, "sync-s", "first-reconcile-s", "change-ms")
	b.positive(t, "Restart", baseline, "sync-s")
	if got := b.Median("Restart", agent, "writes"); got != 0 {
		t.Errorf("%v writes after a restart", got)
	}
}

func testReconnect(t *testing.T, b *bench, w *world.World) {
	b.check(t, w, reconnect)
	reads := 0.0
	for _, kind := range []readKind{plainList, streamedList, resumedWatch} {
		reads += b.Median("Reconnect", agent, string(kind))
	}
	if reads < float64(4*b.size) {
		t.Errorf("%v reads were answered after the restart; each of %d connections needs one for each of 4 kinds", reads, b.size)
	}
}

// testMembers: each figure is measured. All members have a heartbeat, which each of them reads.
func testMembers(t *testing.T, b *bench, w *world.World) {
	b.check(t, w, members)
	name := fmt.Sprintf("Members/members=%d", b.size)
	b.positive(t, name, agent, "changes/s", "p50-ms", "p99-ms", "connected-s", "reconnected-s", "slow-etcd-p50-ms", "slow-etcd-p99-ms")
	if got := b.Median(name, agent, "slow-etcd-p99-ms"); got < 500 {
		t.Errorf("while etcd runs for a tenth of the time, the p99 of the lag is %.0f ms", got)
	}
	b.positive(t, name, "kube-apiserver", "cpu-percent", "resident-MB", "heartbeat-events/s", "watch-events/s")
	b.positive(t, name, "etcd", "cpu-percent", "resident-MB")
	least := float64(b.size*b.size) / (2 * world.HeartbeatInterval.Seconds())
	if got := b.Median(name, "kube-apiserver", "heartbeat-events/s"); got < least {
		t.Errorf("%.2f events per second for the heartbeats of %d members, want at least %.2f", got, b.size, least)
	}
}

func testNetworks(t *testing.T, b *bench, w *world.World) {
	b.check(t, w, overGateways)
	for _, who := range []string{flat, viaGateways} {
		b.positive(t, gatewayImports, who, "services/s")
		b.positive(t, gatewayWithdrawal, who, "p50-ms", "p99-ms")
	}
	b.positive(t, gatewayChurn, flat, "hub-writes")
	if got := b.Median(gatewayChurn, viaGateways, "hub-writes"); got != 0 {
		t.Errorf("%v writes on the hub for changes that leave the availability as it is", got)
	}
}

func testPolicy(t *testing.T, b *bench, w *world.World) {
	b.check(t, w, withPolicy)
	for _, who := range []string{plain, preferring} {
		b.positive(t, policyChange, who, "cpu-ms/change", "requests/change")
	}
}

func testScale(t *testing.T, b *bench, w *world.World) {
	b.check(t, w, scale)
	name := fmt.Sprintf("Scale/endpoints=%d", newTestServices(b.size, fewPublishers).endpoints())
	b.positive(t, name, agent, "changes/s", "watch-events/s", "p50-ms", "p99-ms")
	b.positive(t, name, "etcd", "cpu-percent")
	b.positive(t, name, "kube-apiserver", "cpu-percent")
}
