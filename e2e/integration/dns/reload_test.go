// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
)

// TestReloadUnderLoad: CoreDNS reads its Corefile again and again while it is asked without pause. What exists all the time
// is in each answer, whole; no answer is that of a server that knows only a part. What is lost on the way, clients ask
// again. Nothing of the old servers is left running.
//
// spec: N8
func TestReloadUnderLoad(t *testing.T) {
	const reloads = 4
	w := start(t)
	if err := membership.InstallCRDs(t.Context(), w.cluster); err != nil {
		t.Fatal(err)
	}
	w.create(t, imported("web", v1beta1.ClusterSetIP, "10.96.0.1"), imported("db", v1beta1.Headless), endpoints("db-east-1", "10.1.0.1", "10.1.0.2"))
	s := startServer(t, "cache\nloadbalance\nclusterset clusterset.local {\nkubeconfig "+w.kubeconfig(t)+"\nstartup_timeout 1m\n}")
	wanted := map[string]string{
		"web.default.svc.clusterset.local. A":                "NOERROR 10.96.0.1",
		"db.default.svc.clusterset.local. A":                 "NOERROR 10.1.0.1 10.1.0.2",
		"east.db.default.svc.clusterset.local. A":            "NOERROR",
		"10-1-0-2.east.db.default.svc.clusterset.local. A":   "NOERROR 10.1.0.2",
		"_http._tcp.web.default.svc.clusterset.local. SRV":   "NOERROR 0 100 80 web.default.svc.clusterset.local.",
		"_tcp.db.default.svc.clusterset.local. AAAA":         "NOERROR",
		"none.default.svc.clusterset.local. A":               "NXDOMAIN",
		"x.10-1-0-2.east.db.default.svc.clusterset.local. A": "NXDOMAIN",
		"_http._tcp.web.default.svc.clusterset.local. AAAA":  "NOERROR",
	}
	for question, want := range wanted {
		await(t, s, question, want)
	}
	before := runtime.NumGoroutine()
	l := load{wanted: wanted, udp: s.instance.Servers()[0].LocalAddr().String(), tcp: s.instance.Servers()[0].Addr().String()}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for _, network := range []string{"udp", "udp", "udp", "tcp"} {
		l.asking.Go(func() { l.run(ctx, t, network) })
	}
	for i := range reloads {
		answered := l.answered.Load()
		restarted, err := s.instance.Restart(s.instance.Caddyfile())
		if err != nil {
			t.Fatal(err)
		}
		s.instance = restarted
		w.create(t, imported(fmt.Sprintf("more-%d", i), v1beta1.ClusterSetIP, "10.96.1.1"))
		await(t, s, fmt.Sprintf("more-%d.default.svc.clusterset.local. A", i), "NOERROR 10.96.1.1")
		if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, patience, true, func(context.Context) (bool, error) {
			return l.answered.Load() > answered+200, nil
		}); err != nil {
			t.Fatalf("after reload %d: %d answers, before %d", i, l.answered.Load(), answered)
		}
	}
	stop()
	l.asking.Wait()
	t.Logf("%d answers, %d questions without", l.answered.Load(), l.lost.Load())
	if l.lost.Load() > l.answered.Load() {
		t.Errorf("%d questions got no answer, %d did", l.lost.Load(), l.answered.Load())
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return runtime.NumGoroutine() < before+3*reloads, nil // a server that leaks leaves its publisher and two watches
	})
	if err != nil {
		buffer := make([]byte, 1<<20)
		t.Errorf("%d goroutines, before %d:\n%s", runtime.NumGoroutine(), before, buffer[:runtime.Stack(buffer, true)])
	}
}

// load asks a server without pause.
type load struct {
	wanted         map[string]string
	udp, tcp       string
	asking         sync.WaitGroup
	answered, lost atomic.Int64
}

func (l *load) run(ctx context.Context, t *testing.T, network string) {
	address := map[string]string{"udp": l.udp, "tcp": l.tcp}[network]
	for ctx.Err() == nil {
		for question, want := range l.wanted {
			got, reply := exchange(question, network, address)
			if !reply.Response {
				l.lost.Add(1)
				continue
			}
			l.answered.Add(1)
			if got != want {
				t.Errorf("during a reload, %s over %s: %s, want %s", question, network, got, want)
			}
		}
	}
}

// testTwoInstances: two servers of one cluster give the same answers to the same questions, also after changes.
func (c *content) testTwoInstances(t *testing.T, w world, questions []question) {
	var programs [2]*program
	for i := range programs {
		programs[i] = startProgram(t, fmt.Sprintf(ours, w.cluster.Kubeconfig()))
	}
	check := func(when string) {
		t.Helper()
		one, other := newLine(t, programs[0].tcp), newLine(t, programs[1].tcp)
		records := 0
		for i := 0; i < len(questions); i += 3 * len(asked) {
			same := questions[i : i+len(asked)]
			got, want := one.ask(t, same...), other.ask(t, same...)
			for j, q := range same {
				if got[j] == nil || want[j] == nil {
					t.Fatalf("%s, %s: no reply", when, q)
				}
				if diff := cmp.Diff(essence(want[j]), essence(got[j])); diff != "" {
					t.Errorf("%s, %s (-one +other):\n%s", when, q, diff)
				}
				records += len(got[j].Answer)
			}
		}
		if records < 100 {
			t.Errorf("%s: %d records: the comparison says little", when, records)
		}
	}
	check("at first")
	for i, o := range c.objects {
		if i%3 != 0 {
			continue
		}
		if err := w.client.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	// Each kind of object comes in its order, so what is last in both tells that all is there.
	w.create(t, imported("last", v1beta1.ClusterSetIP, "10.96.9.9"), imported("db", v1beta1.Headless), endpoints("db-east-1", "10.1.9.9"))
	for _, p := range programs {
		await(t, p, "last.default.svc.clusterset.local. A", "NOERROR 10.96.9.9")
		await(t, p, "db.default.svc.clusterset.local. A", "NOERROR 10.1.9.9")
	}
	check("after changes")
}
