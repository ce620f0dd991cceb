// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// exports is how many services are exported at once where writes are counted.
const exports = 60

// TestWrites counts what the API servers are asked to write, refused requests included: what a service costs when it is
// exported, changed and withdrawn, and that no object and no Event is written if nothing changes, of whatever kind a service is.
//
// spec: C3, D7
func TestWrites(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
	stopA, stopB := a.Start(t), b.Start(t)
	ns := world.Namespace(t, a, b)
	keys := services(ns, "svc", exports)
	sources := 0 // none, one or two slices each
	for i, k := range keys {
		service := world.Service(k, world.Port("http", 80))
		lab.Must(t, a.Create(t.Context(), service))
		for j := range i % 3 {
			lab.Must(t, a.Create(t.Context(), world.Slice(service, strconv.Itoa(j), fmt.Sprintf("10.1.%d.%d", j, i+1))))
			sources++
		}
	}
	for _, m := range []*member{a, b} { // whose controller makes it, whenever
		world.Eventually(t, func(ctx context.Context) error {
			return m.Get(ctx, key{Namespace: ns, Name: "default"}, &corev1.ServiceAccount{})
		})
	}
	unchanged := w.settled(t) // the Services are in the agents' caches before they are exported

	atOnce(t, keys, func(ctx context.Context, k key) error { return a.Create(ctx, world.Export(k)) })
	for _, k := range keys {
		a.Imported(t, k)
		b.Imported(t, k)
		a.Condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
	}
	for i, k := range keys {
		want := []string{fmt.Sprintf("a 10.1.0.%d:http:8080", i+1), fmt.Sprintf("a 10.1.1.%d:http:8080", i+1)}[:i%3]
		a.Endpoints(t, k, want...)
		b.Endpoints(t, k, want...)
	}
	exported := w.settled(t)
	const statusWrites = "a serviceexports/status PUT 200" // "exported", and before that "pending" where the hub took more than five seconds
	want := writes{
		"a serviceexports POST 201":      exports, // by this test
		statusWrites:                     max(exports, min(2*exports, exported.since(unchanged)[statusWrites])),
		"hub publishedservices POST 201": exports, "hub publishedendpoints POST 201": sources,
		"a services POST 201": exports, "a serviceimports POST 201": exports, "a serviceimports/status PUT 200": exports, "a endpointslices POST 201": sources,
		"b services POST 201": exports, "b serviceimports POST 201": exports, "b serviceimports/status PUT 200": exports, "b endpointslices POST 201": sources,
	}
	// On a busy machine, the agent may not have read "pending" when it writes "exported".
	const early = "a serviceexports/status PUT 409"
	if n := exported.since(unchanged)[early]; n > 0 {
		want[early] = min(n, exports/10)
	}
	exported.cost(t, "exported", unchanged, want)

	atOnce(t, keys, a.change)
	for i := 2; i < exports; i += 3 {
		b.Endpoints(t, keys[i], fmt.Sprintf("a 10.1.0.%d:http:8080", i+1), fmt.Sprintf("a 10.1.2.%d:http:8080", i+1))
	}
	changed := w.settled(t)
	changed.cost(t, "changed", exported, writes{
		"a services PUT 200": exports, "hub publishedendpoints PUT 200": exports / 3, // what is private does not travel
		"a endpointslices PUT 200": 2 * (exports / 3), "b endpointslices PUT 200": exports / 3,
	})

	w.exportEveryKind(t, ns)
	varied, eventsA, eventsB := w.settled(t), a.EventCounts(t, ns), b.EventCounts(t, ns)
	stopA()
	stopB()
	a.Start(t)
	b.Start(t)
	for _, m := range []*member{a, b} {
		world.Eventually(t, func(ctx context.Context) error { return m.says(ctx, w, hubv1alpha1.PublicationComplete) })
	}
	restarted := w.settled(t)
	restarted.cost(t, "restarted", varied, nil)
	lab.Equal(t, "Events of a and b, before and after they were restarted",
		[]map[string]int{eventsA, eventsB}, []map[string]int{a.EventCounts(t, ns), b.EventCounts(t, ns)})

	atOnce(t, keys, func(ctx context.Context, k key) error { return a.Delete(ctx, world.Export(k)) })
	a.Gone(t, keys...)
	b.Gone(t, keys...)
	w.settled(t).cost(t, "withdrawn", restarted, writes{
		"a serviceexports DELETE 200":      exports, // by this test
		"hub publishedservices DELETE 200": exports, "hub publishedendpoints DELETE 200": sources,
		"a services DELETE 200": exports, "a serviceimports DELETE 200": exports, "a endpointslices DELETE 200": sources,
		"b services DELETE 200": exports, "b serviceimports DELETE 200": exports, "b endpointslices DELETE 200": sources,
	})
}

// exportEveryKind exports services of which there is more to write than of a plain one, and returns when that has been done.
func (w *env) exportEveryKind(t *testing.T, ns string) {
	t.Helper()
	a, b := w.members["a"], w.members["b"]
	named := func(name string) key { return key{Namespace: ns, Name: name} }
	disputed, varied, long := w.dispute(t, ns), named("varied"), named(strings.Repeat("long-", 12)+"est")
	metadata, zonal := world.Export(varied), world.Service(varied, world.Port("http", 80))
	zonal.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferClose)
	metadata.Spec.ExportedLabels, metadata.Spec.ExportedAnnotations = map[string]string{"team": "blue"}, map[string]string{"docs": "x"}
	world.Create(t, a, zonal, world.Slice(zonal, "v4", "10.1.9.2"), metadata)
	dual := world.Service(named("dual"), world.Port("http", 80), world.Port("admin", 81))
	pets := world.Headless(named("pets"), world.Port("http", 80))
	far := world.Service(long, world.Port("", 80))
	for i, service := range []*corev1.Service{dual, pets, far} {
		first := world.Slice(service, "v4", fmt.Sprintf("10.1.9.%d", i+3))
		second := world.Slice(service, "v6", fmt.Sprintf("fd00:1::9:%d", i+3))
		if service == pets {
			first.Endpoints[0].Hostname, second.Endpoints[0].Hostname = new("pet-0"), new("pet-1")
		}
		a.ExportService(t, service, first, second)
	}
	for _, m := range []*member{a, b} {
		m.hints(t, varied, map[string]string{"10.1.9.2": "zone-1"})
		m.Endpoints(t, named("dual"), "a 10.1.9.3:http:8080", "a 10.1.9.3:admin:8081", "a fd00:1::9:3:http:8080", "a fd00:1::9:3:admin:8081")
		m.Endpoints(t, named("pets"), "a 10.1.9.4:http:8080", "a fd00:1::9:4:http:8080")
		for _, k := range []key{disputed, varied, long, named("dual"), named("pets")} {
			m.Imported(t, k)
		}
	}
	for _, k := range []key{varied, long, named("dual"), named("pets")} {
		a.Condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
	}
}

// change edits what no other cluster uses of a service, and the address of its second slice if it has one.
func (m *member) change(ctx context.Context, k key) error {
	service := &corev1.Service{}
	if err := m.Get(ctx, k, service); err != nil {
		return err
	}
	service.Labels, service.Annotations = map[string]string{"private": "yes"}, map[string]string{"private": "yes"}
	if err := m.Update(ctx, service); err != nil {
		return err
	}
	second := &discoveryv1.EndpointSlice{}
	if err := m.Get(ctx, key{Namespace: k.Namespace, Name: k.Name + "-1"}, second); err != nil {
		return client.IgnoreNotFound(err)
	}
	second.Endpoints[0].Addresses[0] = strings.Replace(second.Endpoints[0].Addresses[0], "10.1.1.", "10.1.2.", 1)
	return m.Update(ctx, second)
}

// writes are how many requests to write there have been, by cluster, verb, resource and answer.
type writes map[string]int

// cost compares what was written since an earlier count with what that may cost.
func (w writes) cost(t *testing.T, what string, earlier writes, want writes) {
	t.Helper()
	spent := w.since(earlier)
	t.Logf("%s:\n%s", what, spent)
	lab.Equal(t, fmt.Sprintf("%s: writes", what), want, spent, cmpopts.EquateEmpty())
}

// since returns those that have come since others were counted.
func (w writes) since(earlier writes) writes {
	result := writes{}
	for what, n := range w {
		if n > earlier[what] {
			result[what] = n - earlier[what]
		}
	}
	return result
}

func (w writes) String() string {
	var text strings.Builder
	for _, what := range slices.Sorted(maps.Keys(w)) {
		fmt.Fprintf(&text, "%6d %s\n", w[what], what)
	}
	return text.String()
}

// backgroundResources are the resources that are written without a change of any service: by the agents to show that they live, by the
// controllers of the hub, and by the API servers for themselves.
var backgroundResources = []string{
	"leases", "heartbeats", "events", "serviceaccounts/token", "resourcequotas", "resourcequotas/status", "ipaddresses",
	"subjectaccessreviews", "tokenreviews",
}

var changing = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}

// writes asks the API servers of all clusters.
func (w *env) writes(ctx context.Context) (writes, error) {
	clusters := map[string]*lab.Cluster{"hub": w.Hub}
	for id, m := range w.members {
		clusters[id] = m.Cluster
	}
	result := writes{}
	for name, cluster := range clusters {
		all, err := cluster.Requests(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range all {
			if slices.Contains(changing, r.Verb) && !slices.Contains(backgroundResources, r.Resource) {
				result[fmt.Sprintf("%s %s %s %s", name, r.Resource, r.Verb, r.Code)] += r.Count
			}
		}
	}
	return result, nil
}

// settled waits until nothing has been written for two heartbeats of every member, and returns what was written until
// then.
func (w *env) settled(t *testing.T) writes {
	t.Helper()
	var last writes
	world.Eventually(t, func(ctx context.Context) error {
		before, err := w.writes(ctx)
		if err != nil {
			return err
		}
		for range 2 {
			w.beat(t)
		}
		if last, err = w.writes(ctx); err != nil {
			return err
		}
		if news := last.since(before); len(news) > 0 {
			return fmt.Errorf("still written:\n%s", news)
		}
		return nil
	})
	return last
}

// beats waits for the member's next heartbeat.
func (m *member) beats(t *testing.T, w *env) {
	t.Helper()
	world.Eventually(t, w.nextHeartbeat(m.ID))
}

// beat waits for the next heartbeat of all members.
func (w *env) beat(t *testing.T) {
	t.Helper()
	var renewed []func(context.Context) error
	for id := range w.members {
		renewed = append(renewed, w.nextHeartbeat(id))
	}
	world.Eventually(t, func(ctx context.Context) error {
		var errs []error // all are asked each time, as the first answer of each is what the next is compared with
		for _, check := range renewed {
			errs = append(errs, check(ctx))
		}
		return errors.Join(errs...)
	})
}

// nextHeartbeat returns a function that returns nil once a member has renewed the heartbeat that it had when the function was
// called first.
func (w *env) nextHeartbeat(id string) func(context.Context) error {
	heartbeat := &hubv1alpha1.Heartbeat{}
	name := key{Namespace: "member-" + id, Name: hubv1alpha1.HeartbeatName}
	version := ""
	return func(ctx context.Context) error {
		if err := w.HubClient.Get(ctx, name, heartbeat); err != nil {
			return err
		}
		if version == "" || version == heartbeat.ResourceVersion {
			version = heartbeat.ResourceVersion
			return fmt.Errorf("%s has not renewed its heartbeat", id)
		}
		return nil
	}
}
