// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/config/crd"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestHubUnreachable: an agent starts and works while the hub is unreachable, and publishes when it is reachable.
//
// spec: C2, C3, I1
func TestHubUnreachable(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
	stopB := b.Start(t)
	stopA := a.Start(t)
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	service, _ := a.ExportWeb(t, k, "10.1.0.1")
	b.Endpoints(t, k, "a 10.1.0.1:http:8080")
	a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
	before, _ := b.Imported(t, k)
	disputed := w.dispute(t, k.Namespace)
	left := key{Namespace: k.Namespace, Name: "left"}
	a.ExportWeb(t, left, "10.1.0.9")
	b.Endpoints(t, left, "a 10.1.0.9:http:8080")
	halfway, _ := b.Imported(t, left)
	deleted, undone := key{Namespace: k.Namespace, Name: "deleted"}, key{Namespace: k.Namespace, Name: "undone"}
	for _, own := range []key{deleted, undone} {
		a.ExportWeb(t, own, "10.1.0.8")
		a.Endpoints(t, own, "a 10.1.0.8:http:8080")
	}
	absent := []key{{Namespace: k.Namespace, Name: "absent"}, {Namespace: k.Namespace, Name: "absent-without-nodes"}}
	for i, own := range absent {
		absentService := world.Service(own, world.Port("http", 80))
		slice := world.Slice(absentService, "v4", "10.1.0.7")
		if i > 0 {
			slice.Endpoints[0].NodeName = nil
		}
		a.ExportService(t, absentService, slice)
		a.Endpoints(t, own, "a 10.1.0.7:http:8080")
	}
	stopB()
	lab.Must(t, a.Delete(t.Context(), world.Export(left)))
	w.noRecords(t, "a", left)
	lab.Must(t, b.Delete(t.Context(), halfway)) // as an agent leaves it that is stopped in the middle of a withdrawal
	stopA()
	lab.Must(t, w.Hub.APIServer.Stop(t.Context()))
	reported := w.reported(t, disputed)
	for _, own := range absent {
		lab.Must(t, errors.Join(a.Delete(t.Context(), world.Service(own)), a.Delete(t.Context(), world.Export(own))))
	}

	b.Start(t)
	a.Start(t)
	alone := key{Namespace: k.Namespace, Name: "alone"}
	b.ExportWeb(t, alone, "10.2.0.1")
	b.Imported(t, alone) // its own exports work here
	b.Endpoints(t, alone, "b 10.2.0.1:http:8080")
	b.Condition(t, alone, valid, metav1.ConditionTrue, "Valid")
	b.Condition(t, alone, ready, metav1.ConditionUnknown, "Pending")
	a.Condition(t, k, ready, metav1.ConditionTrue, "Exported") // as far as anybody knows
	after, _ := b.Imported(t, k)                               // nothing is deleted on the word of a hub that does not answer
	lab.Equal(t, "the import was written", before, after)
	b.Endpoints(t, k, "a 10.1.0.1:http:8080")
	b.Gauge(t, "tombolo_hub_connected", 0)
	moved := world.Slice(service, "v4", "10.1.0.2") // in its own cluster a service continues to work
	lab.Must(t, a.Update(t.Context(), moved))
	a.Endpoints(t, k, "a 10.1.0.2:http:8080")
	extra := world.Slice(service, "extra", "10.1.0.3")
	lab.Must(t, a.Create(t.Context(), extra))
	a.Endpoints(t, k, "a 10.1.0.2:http:8080", "a 10.1.0.3:http:8080")
	lab.Must(t, a.Delete(t.Context(), extra))
	a.Endpoints(t, k, "a 10.1.0.2:http:8080")

	// What it has withdrawn itself does not serve on.
	lab.Must(t, a.Delete(t.Context(), world.Service(deleted)))
	lab.Must(t, a.Delete(t.Context(), world.Export(undone)))
	for _, own := range absent {
		a.Endpoints(t, own)
	}
	a.Endpoints(t, deleted)
	a.Endpoints(t, undone)

	lab.Must(t, w.Hub.APIServer.Start(t.Context()))
	b.Endpoints(t, k, "a 10.1.0.2:http:8080")
	b.Condition(t, alone, ready, metav1.ConditionTrue, "Exported")
	b.Gone(t, left)
	a.Imported(t, alone)
	a.Endpoints(t, alone, "b 10.2.0.1:http:8080")
	b.Gauge(t, "tombolo_hub_connected", 1)
	lab.Must(t, a.Delete(t.Context(), world.Export(k)))
	b.Gone(t, k)
	lab.Equal(t, "reports on the disputed exports, before the outage and after it", reported, w.reported(t, disputed))
}

// reported returns the versions of the exports of a service, and the counts of the Events in its namespace.
func (w *env) reported(t *testing.T, k key) map[string]any {
	t.Helper()
	result := map[string]any{}
	for id, m := range w.members {
		result[id] = world.Read(t, m, k, world.Export(k)).ResourceVersion
		result[id+" Events"] = m.EventCounts(t, k.Namespace)["PortConflict ServiceExport "+k.Name]
	}
	return result
}

// TestCRDsAbsent: an agent that finds no CRDs reports it, stays up, and starts to work when they appear. If the definition of
// ServiceImports is deleted under a running agent, and with it all imports, both come back.
//
// spec: I1
func TestCRDsAbsent(t *testing.T) {
	t.Parallel()
	_, a, _ := newPair(t)
	for _, name := range []string{"serviceexports", "serviceimports"} {
		a.deleteCRD(t, name+".multicluster.x-k8s.io")
	}
	address := lab.FreeAddress(t)
	a.Start(t, func(o *agent.Options) { o.ProbeAddress = address })
	world.Eventually(t, func(context.Context) error {
		return answers("http://"+address+"/readyz?verbose", http.StatusInternalServerError, "started failed")
	})
	lab.Must(t, answers("http://"+address+"/healthz", http.StatusOK, "ok"))
	lab.Must(t, a.Cluster.InstallCRDs(t.Context(), crd.ServiceExportCRD, crd.ServiceImportCRD))
	world.Eventually(t, func(context.Context) error { return answers("http://"+address+"/readyz", http.StatusOK, "ok") })
	k := key{Namespace: world.Namespace(t, a), Name: "web"}
	a.ExportWeb(t, k, "10.1.0.1")
	a.Imported(t, k)
	a.deleteCRD(t, "serviceimports.multicluster.x-k8s.io")
	lab.Must(t, membership.InstallCRDs(t.Context(), a.Cluster))
	a.Imported(t, k)
	a.Endpoints(t, k, "a 10.1.0.1:http:8080")
}

// startReplica runs the member's agent as one of several, of which one leads, by a lease in a namespace, until the test ends or stop is
// called. One that loses its lease, as it may where the machine is busy, is started again, as its pod would be.
func (m *member) startReplica(t *testing.T, namespace string, adjust ...func(*agent.Options)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	replica, ended := *m, make(chan error, 1) // with an output of its own
	isLost := func(err error) bool { return err != nil && strings.Contains(err.Error(), "leader election lost") }
	electing := func(o *agent.Options) { o.Election, o.Namespace = agent.ElectLeader, namespace }
	run := func() error { return <-replica.Run(ctx, t, append([]func(*agent.Options){electing}, adjust...)...) }
	go func() {
		err := run()
		for ctx.Err() == nil && isLost(err) {
			t.Logf("agent of %s: %v; starting it again", m.ID, err)
			err = run()
		}
		ended <- err
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !isLost(err) {
			t.Errorf("agent of %s: %v", m.ID, err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// TestMetrics: what an agent does can be seen in its metrics.
func TestMetrics(t *testing.T) {
	t.Parallel()
	_, a, b := newPair(t)
	for _, m := range []*member{a, b} {
		m.Start(t)
		m.Gauge(t, "tombolo_hub_connected", 1) // a change from before an agent's start says nothing about how fast it is
	}
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	service := world.Service(k, world.Port("http", 80))
	source := world.Slice(service, "v4", "10.1.0.1")
	source.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: time.Now().UTC().Format(time.RFC3339Nano)}
	a.ExportService(t, service, source)
	b.Imported(t, k)
	a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
	world.Eventually(t, func(context.Context) error { return errors.Join(a.observed("local"), b.observed("remote")) })
	problems, err := testutil.GatherAndLint(a.Registry)
	lab.Must(t, err)
	for _, problem := range problems {
		t.Errorf("metric %s: %s", problem.Metric, problem.Text)
	}
}

// observed returns nil once the member's agent has measured how long changes took to come, all from one kind of source.
func (m *member) observed(source string) error {
	families, err := m.Registry.Gather()
	if err != nil {
		return err
	}
	counts := map[string]uint64{}
	for _, family := range families {
		if family.GetName() == "tombolo_propagation_seconds" {
			for _, metric := range family.GetMetric() {
				counts[metric.GetLabel()[0].GetValue()] = metric.GetHistogram().GetSampleCount()
			}
		}
	}
	all := counts["local"] + counts["remote"]
	if len(counts) != 2 || all == 0 || counts[source] != all {
		return fmt.Errorf("%s: measured %v, want both sources, and only %s ones", m.ID, counts, source)
	}
	return nil
}

// says returns nil once the member's heartbeat has this state of the publication.
func (m *member) says(ctx context.Context, w *env, want hubv1alpha1.Publication) error {
	heartbeat := &hubv1alpha1.Heartbeat{}
	if err := w.HubClient.Get(ctx, key{Namespace: "member-" + m.ID, Name: hubv1alpha1.HeartbeatName}, heartbeat); err != nil {
		return err
	}
	if heartbeat.Spec.Publication != want {
		return fmt.Errorf("the heartbeat of %s says %s", m.ID, heartbeat.Spec.Publication)
	}
	return nil
}

// versions returns the resource versions of everything that there is of a service, in all clusters and on the hub.
func (w *env) versions(t *testing.T, k key) string {
	t.Helper()
	var text strings.Builder
	note := func(where string, objects ...client.Object) {
		for _, o := range objects {
			fmt.Fprintf(&text, "%s %T %s %s\n", where, o, o.GetName(), o.GetResourceVersion())
		}
	}
	for _, id := range []string{"a", "b"} {
		note(id, w.members[id].holdings(t, k)...)
		for _, endpoints := range w.publishedEndpoints(t, id, k) {
			note("hub", endpoints)
		}
	}
	note("a", world.Read(t, w.members["a"], k, &mcsv1beta1.ServiceExport{}))
	note("hub", w.record(t, "a", k))
	return text.String()
}

// holdings returns what a member holds of an import.
func (m *member) holdings(t *testing.T, k key) []client.Object {
	t.Helper()
	serviceImport, derived := m.Imported(t, k)
	all := []client.Object{serviceImport, derived}
	mirrored := m.Slices(t, k)
	for i := range mirrored {
		all = append(all, &mirrored[i])
	}
	return all
}

// answers returns nil where a URL answers with this status and text.
func answers(url string, status int, text string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != status || !strings.Contains(string(body), text) {
		return fmt.Errorf("%s answers %s: %s", url, response.Status, body)
	}
	return nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
