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

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/config/crd"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/manifests"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestNamespaces: a service is imported where its namespace is, whenever that comes.
//
// spec: I1, E8
func TestNamespaces(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	exporter, importer := w.members["a"], w.members["b"]
	exporter.start(t)
	importer.start(t)
	k := key{Namespace: "shop", Name: "web"}
	create := func(m *member) {
		eventually(t, func(ctx context.Context) error {
			return m.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.Namespace}})
		})
	}
	create(exporter)
	service := clusterIPService(k, port("http", 80))
	exporter.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	exporter.imported(t, k)
	for range 2 { // created late, deleted, created again
		create(importer)
		importer.imported(t, k)
		importer.endpoints(t, k, "a 10.1.0.1:http:8080")
		lab.Must(t, importer.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.Namespace}}))
		eventually(t, func(ctx context.Context) error {
			return absent(importer.Get(ctx, client.ObjectKey{Name: k.Namespace}, &corev1.Namespace{}))
		})
	}
}

// TestHubAway: an agent starts and works while the hub is away, and joins in when it comes; nothing is lost meanwhile.
//
// spec: C2, C3, I1
func TestHubAway(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	stopB := b.start(t)
	stopA := a.start(t)
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	a.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	b.endpoints(t, k, "a 10.1.0.1:http:8080")
	a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
	before, _ := b.imported(t, k)
	disputed := w.dispute(t, k.Namespace)
	left := key{Namespace: k.Namespace, Name: "left"}
	leaving := clusterIPService(left, port("http", 80))
	a.exportService(t, leaving, slice(leaving, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.9"))
	b.endpoints(t, left, "a 10.1.0.9:http:8080")
	halfway, _ := b.imported(t, left)
	stopB()
	lab.Must(t, a.Delete(t.Context(), export(left)))
	w.noRecords(t, "a", left)
	lab.Must(t, b.Delete(t.Context(), halfway)) // as an agent leaves it that is stopped in the middle of a withdrawal
	stopA()
	lab.Must(t, w.hub.APIServer.Stop(t.Context()))
	told := w.told(t, disputed)

	b.start(t)
	a.start(t)
	alone := key{Namespace: k.Namespace, Name: "alone"}
	local := clusterIPService(alone, port("http", 80))
	b.exportService(t, local, slice(local, "v4", discoveryv1.AddressTypeIPv4, "10.2.0.1"))
	b.imported(t, alone) // its own exports work here
	b.endpoints(t, alone, "b 10.2.0.1:http:8080")
	b.condition(t, alone, valid, metav1.ConditionTrue, "Valid")
	b.condition(t, alone, ready, metav1.ConditionUnknown, "Pending")
	a.condition(t, k, ready, metav1.ConditionTrue, "Exported") // as far as anybody knows
	after, _ := b.imported(t, k)                               // nothing is deleted on the word of a hub that does not answer
	if after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the import was written: %+v", after)
	}
	b.endpoints(t, k, "a 10.1.0.1:http:8080")
	b.gauge(t, "tombolo_hub_connected", 0)
	moved := slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.2") // in its own cluster a service goes on
	lab.Must(t, a.Update(t.Context(), moved))
	a.endpoints(t, k, "a 10.1.0.2:http:8080")
	extra := slice(service, "extra", discoveryv1.AddressTypeIPv4, "10.1.0.3")
	lab.Must(t, a.Create(t.Context(), extra))
	a.endpoints(t, k, "a 10.1.0.2:http:8080", "a 10.1.0.3:http:8080")
	lab.Must(t, a.Delete(t.Context(), extra))
	a.endpoints(t, k, "a 10.1.0.2:http:8080")

	lab.Must(t, w.hub.APIServer.Start(t.Context()))
	b.endpoints(t, k, "a 10.1.0.2:http:8080")
	b.condition(t, alone, ready, metav1.ConditionTrue, "Exported")
	b.gone(t, left)
	a.imported(t, alone)
	a.endpoints(t, alone, "b 10.2.0.1:http:8080")
	b.gauge(t, "tombolo_hub_connected", 1)
	lab.Must(t, a.Delete(t.Context(), export(k)))
	b.gone(t, k)
	if diff := cmp.Diff(told, w.told(t, disputed)); diff != "" { // neither while the hub was away nor when it came
		t.Errorf("what the exporters of %s are told (-before +after):\n%s", disputed, diff)
	}
}

// dispute has both members export a service otherwise, and returns it when they have been told.
func (w *world) dispute(t *testing.T, ns string) key {
	t.Helper()
	k := key{Namespace: ns, Name: "disputed"}
	older := w.members["a"].exportVariant(t, k, "10.1.9.1", unchanged)
	w.later(t, older.CreationTimestamp)
	w.members["b"].exportVariant(t, k, "10.2.9.1", changed([]string{"ports"}))
	for _, m := range w.members {
		m.condition(t, k, conflict, metav1.ConditionTrue, "PortConflict")
		m.condition(t, k, ready, metav1.ConditionTrue, "Exported")
		eventually(t, func(ctx context.Context) error { return m.hasEvent(ctx, k, "PortConflict") })
		m.endpoints(t, k, "a 10.1.9.1:http:8080")
	}
	return k
}

// told returns the versions of the exports of a service, and how often there was an Event of their conflict, by member.
func (w *world) told(t *testing.T, k key) map[string]string {
	t.Helper()
	result := map[string]string{}
	for id, m := range w.members {
		exported := export(k)
		lab.Must(t, m.Get(t.Context(), k, exported))
		result[id] = fmt.Sprintf("version %s, %d Events", exported.ResourceVersion, m.said(t, k, "PortConflict"))
	}
	return result
}

// TestCRDsAbsent: an agent that finds no CRDs says so, stays up, and starts to work when they appear.
func TestCRDsAbsent(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a := w.members["a"]
	for _, name := range []string{"serviceexports", "serviceimports"} {
		a.deleteCRD(t, name+".multicluster.x-k8s.io")
	}
	address := freeAddress(t)
	a.startWith(t, func(o *agent.Options) { o.ProbeAddress = address })
	eventually(t, func(context.Context) error {
		return answers("http://"+address+"/readyz?verbose", http.StatusInternalServerError, "started failed")
	})
	lab.Must(t, answers("http://"+address+"/healthz", http.StatusOK, "ok"))
	lab.Must(t, a.cluster.InstallCRDs(t.Context(), crd.ServiceExportCRD, crd.ServiceImportCRD))
	eventually(t, func(context.Context) error { return answers("http://"+address+"/readyz", http.StatusOK, "ok") })
	k := key{Namespace: namespace(t, a), Name: "web"}
	a.exportService(t, clusterIPService(k, port("http", 80)))
	a.imported(t, k)
}

// TestCRDMadeAnew: the definition of ServiceImports is deleted under a running agent, and with it all imports; when it is back, so
// are they.
//
// spec: I1
func TestCRDMadeAnew(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	a.start(t)
	b.start(t)
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	a.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	b.endpoints(t, k, "a 10.1.0.1:http:8080")
	b.imported(t, k)
	b.deleteCRD(t, "serviceimports.multicluster.x-k8s.io")
	lab.Must(t, membership.InstallCRDs(t.Context(), b.cluster))
	b.imported(t, k)
	b.endpoints(t, k, "a 10.1.0.1:http:8080")
}

// TestRestart: what went on while an agent was down is made up for, and what has not changed is not written again.
//
// spec: D7, E3
func TestRestart(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	stopA, stopB := a.start(t), b.start(t)
	ns := namespace(t, a, b)
	kept, withdrawn := key{Namespace: ns, Name: "kept"}, key{Namespace: ns, Name: "withdrawn"}
	for i, k := range []key{kept, withdrawn} {
		service := clusterIPService(k, port("http", 80))
		a.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, fmt.Sprintf("10.1.0.%d", i+1)))
		a.condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
		for _, m := range []*member{a, b} {
			m.imported(t, k)
		}
	}
	w.settled(t)
	stopA()
	stopB()
	before := w.versions(t, kept)
	lab.Must(t, a.Delete(t.Context(), export(withdrawn)))
	a.start(t)
	b.start(t)
	a.gone(t, withdrawn)
	b.gone(t, withdrawn)
	eventually(t, func(ctx context.Context) error { return a.says(ctx, w, hubv1alpha1.PublicationComplete) })
	if after := w.versions(t, kept); after != before {
		t.Errorf("objects of %s were written without need:\n%s\nbefore:\n%s", kept, after, before)
	}
}

// TestIdentity: an agent takes its ID from the cluster, stops rather than change it, and waits for one where there is none or none
// that can be one.
//
// spec: K1, K2, N7
func TestIdentity(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a := w.members["a"]
	ended := a.run(t.Context(), t, func(o *agent.Options) { o.ClusterID = "from-the-flag" })
	eventually(t, func(ctx context.Context) error { return a.says(ctx, w, hubv1alpha1.PublicationComplete) })

	property := &aboutv1beta1.ClusterProperty{}
	lab.Must(t, a.Get(t.Context(), client.ObjectKey{Name: aboutv1beta1.ClusterIDProperty}, property))
	property.Spec.Value = "other"
	lab.Must(t, a.Update(t.Context(), property))
	err := <-ended
	want := `the ClusterProperty cluster.clusterset.k8s.io has changed from "a" to "other": a cluster keeps its ID while it is a member; ` +
		`set it back, or let the cluster leave the clusterset and join again under the new ID`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the agent ended with %v, want: %s", err, want)
	}

	lab.Must(t, a.Delete(t.Context(), property))
	address := freeAddress(t)
	a.startWith(t, func(o *agent.Options) { o.ClusterID, o.ProbeAddress = "", address })
	waits := func(why string) {
		t.Helper()
		eventually(t, func(context.Context) error {
			return answers("http://"+address+"/readyz/started", http.StatusInternalServerError, why)
		})
		lab.Must(t, answers("http://"+address+"/healthz", http.StatusOK, "ok"))
	}
	waits("the cluster ID is empty: set the ClusterProperty cluster.clusterset.k8s.io, or pass --cluster-id")
	property = &aboutv1beta1.ClusterProperty{ObjectMeta: metav1.ObjectMeta{Name: aboutv1beta1.ClusterIDProperty}}
	property.Spec.Value = "Not.Legal"
	lab.Must(t, a.Create(t.Context(), property))
	waits(`ClusterProperty cluster.clusterset.k8s.io: cluster ID "Not.Legal" is no DNS label`)
	property.Spec.Value = "a"
	lab.Must(t, a.Update(t.Context(), property))
	eventually(t, func(context.Context) error { return answers("http://"+address+"/readyz", http.StatusOK, "ok") })
}

// TestForeignID: a cluster that bears another's ID, or none that the hub knows, publishes nothing and says why. What it
// has imported as itself stays as it is.
//
// spec: K2, C2, I2
//
//nolint:tparallel // each story begins where the one before it ends
func TestForeignID(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	kill := a.start(t)
	space := namespace(t, a, b)
	theirs := key{Namespace: space, Name: "theirs"}
	service := clusterIPService(theirs, port("http", 80))
	a.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	stop := b.start(t)
	b.endpoints(t, theirs, "a 10.1.0.1:http:8080")
	a.condition(t, theirs, conflict, metav1.ConditionFalse, "NoConflicts")
	both := key{Namespace: space, Name: "both"} // its own endpoints do not become the other's
	for m, address := range map[*member]string{a: "10.1.0.2", b: "10.2.0.2"} {
		service := clusterIPService(both, port("http", 80))
		m.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, address))
	}
	b.endpoints(t, both, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080")
	w.settled(t)
	stop()
	before := w.versions(t, theirs)
	shared := b.holdings(t, both)

	k := key{Namespace: space, Name: "web"}
	lab.Must(t, b.Delete(t.Context(), &aboutv1beta1.ClusterProperty{ObjectMeta: metav1.ObjectMeta{Name: aboutv1beta1.ClusterIDProperty}}))
	t.Run("with its own token", func(t *testing.T) {
		stop := b.startWith(t, func(o *agent.Options) { o.ClusterID = "a" })
		eventually(t, func(context.Context) error {
			if said := b.output.tail(80); !strings.Contains(said, `the token for the hub is that of member \"b\", but this cluster says that it is \"a\"`) {
				return fmt.Errorf("the agent says:\n%s", said)
			}
			return nil
		})
		stop()
	})
	for _, story := range []struct {
		id   string
		with *rest.Config
		want string
	}{
		{"a", a.hub, `The hub refuses the export: another cluster (kube-system UID ` + a.uid(t) + `) is a member of the clusterset under the ID "a": ` +
			`give one of the two another ID and let it join again, or wait until the other has been silent for 2m0s`},
		{"nobody", w.hub.Config(), `The hub refuses the export: it has no Member for cluster ID "nobody"; the hub's administrator lets the cluster join first`},
	} {
		t.Run(story.id, func(t *testing.T) {
			stop := b.startWith(t, func(o *agent.Options) {
				o.ClusterID, o.Hub, o.HeartbeatInterval = story.id, story.with, 30*time.Second
			})
			b.exportService(t, clusterIPService(k, port("http", 80)))
			c := b.condition(t, k, ready, metav1.ConditionFalse, "Failed")
			if c.Message != story.want {
				t.Errorf("message %q\nwant    %q", c.Message, story.want)
			}
			stop()
			if diff := cmp.Diff(shared, b.holdings(t, both)); diff != "" && story.id == "a" {
				t.Errorf("what both export has changed (-before +after):\n%s", diff)
			}
			lab.Must(t, b.Delete(t.Context(), export(k)))
			lab.Must(t, b.Delete(t.Context(), clusterIPService(k)))
		})
	}
	if after := w.versions(t, theirs); after != before {
		t.Errorf("what was imported has changed:\n%s\nbefore:\n%s", after, before)
	}
	records := &hubv1alpha1.PublishedServiceList{}
	lab.Must(t, w.hubKube.List(t.Context(), records))
	for _, r := range records.Items {
		if r.Spec.Service == hubv1alpha1.ServiceName(k.Name) {
			t.Errorf("published all the same: %+v", r)
		}
	}
	w.testTakenOver(t, kill)
}

// TestLeader: of two replicas one works, and the other takes over when it ends.
func TestLeader(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a := w.members["a"]
	stop := a.startReplica(t)
	lease := &coordinationv1.Lease{}
	holder := func(ctx context.Context) error {
		if err := a.Get(ctx, key{Namespace: manifests.AgentNamespace, Name: "tombolo-agent"}, lease); err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return errors.New("nobody leads")
		}
		return nil
	}
	eventually(t, holder)
	first := *lease.Spec.HolderIdentity
	eventually(t, func(ctx context.Context) error { return a.says(ctx, w, hubv1alpha1.PublicationComplete) })
	a.startReplica(t)
	stop()
	eventually(t, func(ctx context.Context) error {
		if err := holder(ctx); err != nil {
			return err
		}
		if *lease.Spec.HolderIdentity == first {
			return fmt.Errorf("%s still leads", first)
		}
		return nil
	})
	k := key{Namespace: namespace(t, a), Name: "web"}
	a.exportService(t, clusterIPService(k, port("http", 80)))
	a.imported(t, k)
}

// startReplica runs the member's agent as one of several, of which one leads, until the test ends or stop is called. One that
// loses its lease, as it may where the machine is busy, is started again, as its pod would be.
func (m *member) startReplica(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	replica, ended := *m, make(chan error, 1) // with an output of its own
	isLost := func(err error) bool { return err != nil && strings.Contains(err.Error(), "leader election lost") }
	run := func() error {
		return <-replica.run(ctx, t, func(o *agent.Options) { o.Election, o.Namespace = agent.ElectLeader, manifests.AgentNamespace })
	}
	go func() {
		err := run()
		for ctx.Err() == nil && isLost(err) {
			t.Logf("agent of %s: %v; starting it again", m.id, err)
			err = run()
		}
		ended <- err
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !isLost(err) {
			t.Errorf("agent of %s: %v", m.id, err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// TestMetrics: what an agent does can be seen in its metrics.
func TestMetrics(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	for _, m := range []*member{a, b} {
		m.start(t)
		m.gauge(t, "tombolo_hub_connected", 1) // a change from before an agent's start says nothing about how fast it is
	}
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	source := slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1")
	source.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: time.Now().UTC().Format(time.RFC3339Nano)}
	a.exportService(t, service, source)
	b.imported(t, k)
	a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
	for name, want := range map[string]float64{
		"tombolo_hub_connected": 1, "tombolo_exports": 1, "tombolo_exports_not_ready": 0, "tombolo_exports_conflicting": 0,
		"tombolo_imports": 1, "tombolo_imports_not_ready": 0,
	} {
		a.gauge(t, name, want)
	}
	eventually(t, func(context.Context) error { return errors.Join(a.observed("local"), b.observed("remote")) })
	problems, err := testutil.GatherAndLint(a.registry)
	lab.Must(t, err)
	for _, problem := range problems {
		t.Errorf("metric %s: %s", problem.Metric, problem.Text)
	}
}

// gauge waits until a metric of the member's agent has a value; of one with labels, all in all.
func (m *member) gauge(t *testing.T, name string, want float64) {
	t.Helper()
	eventually(t, func(context.Context) error {
		families, err := m.registry.Gather()
		if err != nil {
			return err
		}
		for _, family := range families {
			if family.GetName() == name {
				got := 0.0
				for _, metric := range family.GetMetric() {
					got += metric.GetGauge().GetValue()
				}
				if got != want {
					return fmt.Errorf("%s: %s is %v, want %v", m.id, name, got, want)
				}
				return nil
			}
		}
		return fmt.Errorf("%s: no metric %s", m.id, name)
	})
}

// observed returns nil once the member's agent has measured how long changes took to come, all from one kind of source.
func (m *member) observed(source string) error {
	families, err := m.registry.Gather()
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
		return fmt.Errorf("%s: measured %v, want both sources, and only %s ones", m.id, counts, source)
	}
	return nil
}

// says returns nil once the member's heartbeat tells this of its publication.
func (m *member) says(ctx context.Context, w *world, want hubv1alpha1.Publication) error {
	heartbeat := &hubv1alpha1.Heartbeat{}
	if err := w.hubKube.Get(ctx, key{Namespace: "member-" + m.id, Name: hubv1alpha1.HeartbeatName}, heartbeat); err != nil {
		return err
	}
	if heartbeat.Spec.Publication != want {
		return fmt.Errorf("the heartbeat of %s says %s", m.id, heartbeat.Spec.Publication)
	}
	return nil
}

// versions returns the resource versions of everything that there is of a service, in all clusters and on the hub.
func (w *world) versions(t *testing.T, k key) string {
	t.Helper()
	var text strings.Builder
	note := func(where string, objects ...client.Object) {
		for _, o := range objects {
			fmt.Fprintf(&text, "%s %T %s %s\n", where, o, o.GetName(), o.GetResourceVersion())
		}
	}
	for _, id := range []string{"a", "b"} {
		note(id, w.members[id].holdings(t, k)...)
	}
	exported := &mcsv1beta1.ServiceExport{}
	lab.Must(t, w.members["a"].Get(t.Context(), k, exported))
	service := &hubv1alpha1.PublishedService{}
	lab.Must(t, w.hubKube.Get(t.Context(), key{Namespace: "member-a", Name: k.Namespace + "." + k.Name}, service))
	endpoints := &hubv1alpha1.PublishedEndpointsList{}
	lab.Must(t, w.hubKube.List(t.Context(), endpoints))
	note("a", exported)
	note("hub", service)
	for i := range endpoints.Items {
		if strings.HasPrefix(endpoints.Items[i].Name, k.Namespace+"."+k.Name+".") {
			note("hub", &endpoints.Items[i])
		}
	}
	return text.String()
}

// holdings returns what a member holds of an import.
func (m *member) holdings(t *testing.T, k key) []client.Object {
	t.Helper()
	serviceImport, derived := m.imported(t, k)
	all := []client.Object{serviceImport, derived}
	mirrored, err := m.mirrored(t.Context(), k)
	lab.Must(t, err)
	for i := range mirrored {
		all = append(all, &mirrored[i])
	}
	return all
}

func (m *member) uid(t *testing.T) string {
	t.Helper()
	system := &corev1.Namespace{}
	lab.Must(t, m.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system))
	return string(system.UID)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	free, err := lab.FreeAddresses(1)
	lab.Must(t, err)
	return free[0]
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
