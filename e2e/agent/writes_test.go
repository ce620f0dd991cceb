// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// crowd is how many services are exported at once where writes are counted.
const crowd = 200

// TestWrites counts what the API servers are asked to write, refused requests included: what a service costs when it is
// exported, changed and withdrawn, and that nothing is written where nothing changes.
//
// spec: D7
func TestWrites(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	stopA, stopB := a.start(t), b.start(t)
	ns := namespace(t, a, b)
	var keys []key
	for i := range crowd {
		keys = append(keys, key{Namespace: ns, Name: fmt.Sprintf("svc-%03d", i)})
	}
	sources := 0 // none, one or two slices each
	for i, k := range keys {
		service := clusterIPService(k, port("http", 80))
		must(t, a.Create(t.Context(), service))
		for j := range i % 3 {
			must(t, a.Create(t.Context(), slice(service, strconv.Itoa(j), discoveryv1.AddressTypeIPv4, fmt.Sprintf("10.1.%d.%d", j, i+1))))
			sources++
		}
	}
	unchanged := w.settled(t) // the Services are in the agents' caches before they are exported

	atOnce(t, keys, func(ctx context.Context, k key) error { return a.Create(ctx, export(k)) })
	for _, k := range keys {
		a.imported(t, k)
		b.imported(t, k)
		a.condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
	}
	exported := w.settled(t)
	const said = "a serviceexports/status PUT 200" // "pending" and "exported", unless the hub is faster
	exported.cost(t, "exported", unchanged, writes{
		"a serviceexports POST 201":      crowd, // by this test
		said:                             min(2*crowd, exported.since(unchanged)[said]),
		"hub publishedservices POST 201": crowd, "hub publishedendpoints POST 201": sources,
		"a services POST 201": crowd, "a serviceimports POST 201": crowd, "a serviceimports/status PUT 200": crowd, "a endpointslices POST 201": sources,
		"b services POST 201": crowd, "b serviceimports POST 201": crowd, "b serviceimports/status PUT 200": crowd, "b endpointslices POST 201": sources,
	})

	atOnce(t, keys, a.change)
	for i := 2; i < crowd; i += 3 {
		b.endpoints(t, keys[i], fmt.Sprintf("a 10.1.0.%d:http:8080", i+1), fmt.Sprintf("a 10.1.2.%d:http:8080", i+1))
	}
	changed := w.settled(t)
	changed.cost(t, "changed", exported, writes{
		"a services PUT 200": crowd, "hub publishedendpoints PUT 200": crowd / 3, // what is private does not travel
		"a endpointslices PUT 200": 2 * (crowd / 3), "b endpointslices PUT 200": crowd / 3,
	})

	stopA()
	stopB()
	a.start(t)
	b.start(t)
	eventually(t, func(ctx context.Context) error { return a.says(ctx, w, hubv1alpha1.PublicationComplete) })
	restarted := w.settled(t)
	restarted.cost(t, "restarted", changed, nil)

	atOnce(t, keys, func(ctx context.Context, k key) error { return a.Delete(ctx, export(k)) })
	for _, k := range keys {
		a.gone(t, k)
		b.gone(t, k)
	}
	w.settled(t).cost(t, "withdrawn", restarted, writes{
		"a serviceexports DELETE 200":      crowd, // by this test
		"hub publishedservices DELETE 200": crowd, "hub publishedendpoints DELETE 200": sources,
		"a services DELETE 200": crowd, "a serviceimports DELETE 200": crowd, "a endpointslices DELETE 200": sources,
		"b services DELETE 200": crowd, "b serviceimports DELETE 200": crowd, "b endpointslices DELETE 200": sources,
	})
}

// change edits what concerns nobody else of a service, and the address of its second slice if it has one.
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

// atOnce calls do for all services, several at a time.
func atOnce(t *testing.T, keys []key, do func(context.Context, key) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(8)
	for _, k := range keys {
		group.Go(func() error { return do(ctx, k) })
	}
	must(t, group.Wait())
}

// writes are how many requests to write there have been, by cluster, verb, resource and answer.
type writes map[string]int

// cost compares what was written since an earlier count with what that may cost.
func (w writes) cost(t *testing.T, what string, earlier writes, want writes) {
	t.Helper()
	spent := w.since(earlier)
	t.Logf("%s:\n%s", what, spent)
	if diff := cmp.Diff(want, spent, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: writes (-want +got):\n%s", what, diff)
	}
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

// aside are the resources that are written without a change of any service: by the agents to show that they live, by the
// controllers of the hub, and by the API servers for themselves.
var aside = []string{
	"leases", "heartbeats", "events", "serviceaccounts/token", "resourcequotas", "resourcequotas/status", "ipaddresses",
	"subjectaccessreviews", "tokenreviews",
}

// changing are the verbs of requests that write.
var changing = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}

// writes asks the API servers of all clusters.
func (w *world) writes(ctx context.Context) (writes, error) {
	result := writes{}
	if err := result.count(ctx, "hub", w.hub); err != nil {
		return nil, err
	}
	for id, m := range w.members {
		if err := result.count(ctx, id, m.cluster); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// count adds the writes to one cluster.
func (w writes) count(ctx context.Context, name string, cluster *lab.Cluster) error {
	all, err := cluster.Requests(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if slices.Contains(changing, r.Verb) && !slices.Contains(aside, r.Resource) {
			w[fmt.Sprintf("%s %s %s %s", name, r.Resource, r.Verb, r.Code)] += r.Count
		}
	}
	return nil
}

// settled waits until nothing has been written for two heartbeats of every member, and returns what was written until
// then.
func (w *world) settled(t *testing.T) writes {
	t.Helper()
	var last writes
	eventually(t, func(ctx context.Context) error {
		before, err := w.writes(ctx)
		if err != nil {
			return err
		}
		for range 2 {
			for _, m := range w.members {
				m.beats(t, w)
			}
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
func (m *member) beats(t *testing.T, w *world) {
	t.Helper()
	heartbeat := &hubv1alpha1.Heartbeat{}
	name := key{Namespace: "member-" + m.id, Name: hubv1alpha1.HeartbeatName}
	version := ""
	eventually(t, func(ctx context.Context) error {
		if err := w.hubKube.Get(ctx, name, heartbeat); err != nil {
			return err
		}
		if version == "" || version == heartbeat.ResourceVersion {
			version = heartbeat.ResourceVersion
			return fmt.Errorf("%s has not renewed its heartbeat", m.id)
		}
		return nil
	})
}
