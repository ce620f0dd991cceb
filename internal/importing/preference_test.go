// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/preference"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// prefer returns the routing of the cluster "own" by these sources.
func prefer(v view, from ...policyv1alpha1.Source) Routing {
	serving := map[clusterset.ClusterID]bool{}
	for _, slice := range v.Mirrored {
		serving[SourceOf(slice)] = serving[SourceOf(slice)] || len(slice.Ports) > 0
	}
	return Routing{Policy: "ServiceImportRoutingPolicy p", Sources: from, Clusters: preference.Clusters{
		Local: "own", Serving: serving, Properties: map[clusterset.ClusterID]map[string]string{"own": {}, "a": {}, "b": {}},
	}}
}

func clusters(ids ...policyv1alpha1.ClusterID) policyv1alpha1.Source {
	return policyv1alpha1.Source{Clusters: ids}
}

// Direct and gateway sources are preferred to each other. A source that does not serve keeps its listening ports, and one that the
// policy does not match makes no other be left out.
//
// spec: P1, P2, G2
func TestPreferredSources(t *testing.T) {
	t.Parallel()
	const portsOfB = "80=10000"
	onlyA, onlyB := map[string][]string{"a": {"http", "10.1.0.1", ""}, "b": {"10.9.0.1", portsOfB}}, map[string][]string{"b": {"http", "10.9.0.1", portsOfB}}
	both := map[string][]string{"a": {"http", "10.1.0.1", ""}, "b": {"http", "10.9.0.1", portsOfB}}
	anyone := policyv1alpha1.Source{Any: true}
	for name, test := range map[string]struct {
		sources []policyv1alpha1.Source
		change  func(*view)
		want    map[string][]string
		reason  string
		message string
	}{
		"no policy":               {nil, func(*view) {}, both, "", ""},
		"any":                     {[]policyv1alpha1.Source{anyone}, func(*view) {}, both, conditions.ReasonFirstSource, "ServiceImportRoutingPolicy p: source 1 serves http/IPv4 from a, b"},
		"the direct one":          {[]policyv1alpha1.Source{clusters("a"), anyone}, func(*view) {}, onlyA, conditions.ReasonFirstSource, "ServiceImportRoutingPolicy p: source 1 serves http/IPv4 from a"},
		"the one behind gateways": {[]policyv1alpha1.Source{clusters("b"), anyone}, func(*view) {}, onlyB, conditions.ReasonFirstSource, "ServiceImportRoutingPolicy p: source 1 serves http/IPv4 from b"},
		"the direct one has no endpoint": {
			[]policyv1alpha1.Source{clusters("a"), anyone},
			func(v *view) { v.Sources.Hub.Slices[0].Endpoints = nil }, onlyB, conditions.ReasonFallback, "ServiceImportRoutingPolicy p: source 2 serves http/IPv4 from b",
		},
		"the one behind gateways has no endpoint": {
			[]policyv1alpha1.Source{clusters("b"), anyone},
			func(v *view) { v.Sources.Hub.Exports[1].Available = clusterset.Availability{http.ID(): 0} },
			map[string][]string{"a": {"http", "10.1.0.1", ""}, "b": {portsOfB}},
			conditions.ReasonFallback, "ServiceImportRoutingPolicy p: source 2 serves http/IPv4 from a",
		},
		"the endpoints behind gateways terminate": {
			[]policyv1alpha1.Source{clusters("b"), anyone},
			func(v *view) { v.Sources.Hub.Exports[1].Terminating = map[clusterset.PortID]bool{http.ID(): true} },
			map[string][]string{"a": {"http", "10.1.0.1", ""}, "b": {"10.9.0.1", portsOfB}},
			conditions.ReasonFallback, "ServiceImportRoutingPolicy p: source 2 serves http/IPv4 from a",
		},
		"the preferred one is silent": {
			[]policyv1alpha1.Source{clusters("a"), anyone},
			func(v *view) { v.states["a"] = liveness.Silent }, onlyB, conditions.ReasonFallback, "ServiceImportRoutingPolicy p: source 2 serves http/IPv4 from b",
		},
		"the only one is silent, and another that the policy does not match is live": {
			[]policyv1alpha1.Source{clusters("a")},
			func(v *view) { v.states["a"] = liveness.Silent }, onlyA, conditions.ReasonFirstSource, "ServiceImportRoutingPolicy p: source 1 serves http/IPv4 from a",
		},
		"the only one has no endpoint": {
			[]policyv1alpha1.Source{clusters("a")},
			func(v *view) { v.Sources.Hub.Slices[0].Endpoints = nil },
			map[string][]string{"a": {"http", ""}, "b": {"10.9.0.1", portsOfB}},
			conditions.ReasonNoSource, "no source of ServiceImportRoutingPolicy p has an available endpoint",
		},
		"no source matches": {
			[]policyv1alpha1.Source{clusters("c")}, func(*view) {}, map[string][]string{"b": {"10.9.0.1", portsOfB}}, conditions.ReasonNoSource, "no source of ServiceImportRoutingPolicy p has an available endpoint",
		},
		"a headless service": {
			[]policyv1alpha1.Source{clusters("c")}, func(v *view) {
				v.Sources.Hub.Exports = v.Sources.Hub.Exports[:1]
				v.Sources.Hub.Exports[0].Type = mcsv1beta1.Headless
			}, map[string][]string{"a": {"http", "10.1.0.1", ""}}, "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := behindGateway()
			test.change(&v)
			v.Routing = prefer(v, test.sources...)
			d := decide(v)
			check.Equal(t, "slices", test.want, served(desiredSlices(d)))
			check.Equal(t, "the policy applies", test.reason != "", v.Routing.applies(d.merged))
			if test.reason == "" {
				return
			}
			c := v.Routing.condition(d)
			check.Equal(t, "condition", []string{test.reason, test.message}, []string{c.Reason, c.Message})
		})
	}
}

// A kept slice serves as long as its source is preferred. Otherwise its ports are withheld, and serve again if they are needed.
//
// spec: P1, E3
func TestPreferredKeptSlices(t *testing.T) {
	t.Parallel()
	v := behindGateway()
	v.Mirrored = desiredSlices(decide(v))
	v.Sources.Hub = sources.Hub{Listed: true, LocalMember: nil}
	v.missing = map[clusterset.ClusterID]sources.Missing{"a": {Export: true, Slices: []string{"0"}}, "b": {Export: true}}
	v.ServiceImport = importOf(held80, "a", "b")
	v.path = nil
	onlyA := map[string][]string{"a": {"http", "10.1.0.1", ""}, "b": {"10.9.0.1", "80=10000"}}
	onlyB := map[string][]string{"a": {"10.1.0.1", ""}, "b": {"http", "10.9.0.1", "80=10000"}}
	for _, step := range []struct {
		sources []policyv1alpha1.Source
		want    map[string][]string
	}{
		{[]policyv1alpha1.Source{clusters("a"), {Any: true}}, onlyA},
		{[]policyv1alpha1.Source{clusters("b"), {Any: true}}, onlyB},
		{[]policyv1alpha1.Source{clusters("b")}, onlyB},
		{[]policyv1alpha1.Source{clusters("a")}, onlyA},
	} {
		v.Routing = prefer(v, step.sources...)
		v.Routing.Available = map[preference.Return]time.Duration{{Port: preference.Port{Name: "http", Family: "IPv4"}, Level: 0}: preference.ReturnDelay}
		d := decide(v)
		check.Equal(t, fmt.Sprint(step.sources), step.want, served(desiredSlices(d)))
		v.Mirrored = desiredSlices(d)
	}
}

// While a better source waits, its slice does not exist, and the request is repeated when it may serve. After the time the others' are
// deleted last.
//
// spec: P1
func TestReturn(t *testing.T) {
	t.Parallel()
	v := behindGateway()
	now := time.Unix(0, 0)
	since := map[preference.Return]time.Time{}
	step := func(after time.Duration, want map[string][]string, wait time.Duration) decision {
		t.Helper()
		now = now.Add(after)
		v.Routing = prefer(v, clusters("a"), policyv1alpha1.Source{Any: true})
		v.Routing.Available = map[preference.Return]time.Duration{}
		for level, began := range since {
			v.Routing.Available[level] = now.Sub(began)
		}
		d := decide(v)
		before := since
		since = map[preference.Return]time.Time{}
		for _, level := range d.choice.Waiting {
			if since[level] = now; !before[level].IsZero() {
				since[level] = before[level]
			}
		}
		check.Equal(t, fmt.Sprintf("slices after %s", after), want, served(desiredSlices(d)))
		check.Equal(t, fmt.Sprintf("after %s: wait", after), wait, d.choice.Wait)
		return d
	}
	onlyA, onlyB := map[string][]string{"a": {"http", "10.1.0.1", ""}, "b": {"10.9.0.1", "80=10000"}}, map[string][]string{"b": {"http", "10.9.0.1", "80=10000"}}
	ready := v.Sources.Hub.Slices[0].Endpoints
	setReady := func(endpoints []clusterset.Endpoint) {
		v.Sources.Hub.Slices = slices.Clone(v.Sources.Hub.Slices)
		v.Sources.Hub.Slices[0].Endpoints = endpoints
	}
	v.Mirrored = desiredSlices(step(0, onlyA, 0))
	setReady(nil)
	failed := desiredSlices(step(time.Second, onlyB, 0))
	for i, change := range plan.EndpointSlices(failed, v.Mirrored) {
		if id := SourceOf(change.Object); i == 0 && id != "b" || i == 1 && (id != "a" || change.Verb != plan.Delete) {
			t.Errorf("change %d: %s the slice of %s", i, change.Verb, id)
		}
	}
	v.Mirrored = failed
	setReady(ready)
	step(time.Second, onlyB, 10*time.Second)
	step(4*time.Second, onlyB, 6*time.Second)
	setReady(nil) // it flaps
	step(time.Second, onlyB, 0)
	setReady(ready)
	step(time.Second, onlyB, 10*time.Second)
	step(9*time.Second, onlyB, time.Second)
	returned := desiredSlices(step(time.Second, onlyA, 0))
	for i, change := range plan.EndpointSlices(returned, v.Mirrored) {
		if id := SourceOf(change.Object); i == 0 && id != "a" || i == 1 && (id != "b" || change.Verb != plan.Update) {
			t.Errorf("change %d: %s the slice of %s", i, change.Verb, id)
		}
	}
	v.Mirrored = returned
	step(0, onlyA, 0)
	if len(since) > 0 {
		t.Errorf("%v is still stored", since)
	}
}

// drawRouting draws exporters with endpoints, a policy, and the mirrored slices of another such state.
func drawRouting(t *rapid.T, label string) view {
	v := view{
		Observed: Observed{
			Namespace: NamespaceAllowed, Families: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, Policies: liveness.DefaultPolicies(),
			Sources: sources.Sources{Key: key, Hub: sources.Hub{Exporters: map[clusterset.ClusterID]reach.Cluster{}}},
		},
		states: map[clusterset.ClusterID]liveness.State{}, path: map[clusterset.ClusterID]reach.Path{},
	}
	condition := rapid.SampledFrom([]clusterset.Endpoint{{}, {Ready: clusterset.False}, {Ready: clusterset.False, Serving: clusterset.True, Terminating: clusterset.True}})
	for i := range rapid.IntRange(1, 5).Draw(t, label+"exporters") {
		id := clusterset.ClusterID(fmt.Sprintf("c%d", i))
		export := exportOf(id, i, http)
		export.Ports = append(export.Ports, admin)
		export.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		v.Sources.Hub.Exports = append(v.Sources.Hub.Exports, export)
		v.states[id] = rapid.SampledFrom([]liveness.State{liveness.Live, liveness.Live, liveness.Silent, liveness.Unknown}).Draw(t, label+"state")
		v.path[id] = reach.Direct
		for n := range rapid.IntRange(0, 3).Draw(t, label+"slices") {
			slice := clusterset.Slice{Cluster: id, ID: fmt.Sprint(n), AddressType: rapid.SampledFrom([]discoveryv1.AddressType{"IPv4", "IPv6"}).Draw(t, label+"family")}
			for _, port := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"http", "admin"}), 1, 2, rapid.ID).Draw(t, label+"ports") {
				slice.Ports = append(slice.Ports, clusterset.EndpointPort{Name: port, Protocol: "TCP", Port: 8080})
			}
			for e := range rapid.IntRange(0, 2).Draw(t, label+"endpoints") {
				endpoint := condition.Draw(t, label+"condition")
				endpoint.Addresses = []string{fmt.Sprintf("10.%d.%d.%d", i, n, e)}
				slice.Endpoints = append(slice.Endpoints, endpoint)
			}
			v.Sources.Hub.Slices = append(v.Sources.Hub.Slices, slice)
		}
	}
	return v
}

// A port and family is served by one level only, and by a ready endpoint if an allowed live source has one; the same input gives the
// same slices, in any order.
//
// spec: P1
func TestRoutingProperties(t *testing.T) {
	t.Parallel()
	source := rapid.SampledFrom([]policyv1alpha1.Source{
		{SameCluster: true}, {SameProperty: "region"}, {Any: true}, {Clusters: []policyv1alpha1.ClusterID{"c0", "c3"}}, {Clusters: []policyv1alpha1.ClusterID{"c1"}},
	})
	rapid.Check(t, func(t *rapid.T) {
		v, before := drawRouting(t, ""), drawRouting(t, "before ")
		v.Mirrored = desiredSlices(decide(before))
		v.Routing = prefer(v, rapid.SliceOfN(source, 1, 4).Draw(t, "sources")...)
		v.Routing.Clusters.Properties = map[clusterset.ClusterID]map[string]string{"own": {"region": "eu"}}
		for i := range 5 {
			id := clusterset.ClusterID(fmt.Sprintf("c%d", i))
			if region := rapid.SampledFrom([]string{"eu", "us", "unknown"}).Draw(t, "region"); region != "unknown" {
				v.Routing.Clusters.Properties[id] = map[string]string{"region": region}
			}
		}
		v.Routing.Clusters.Local = rapid.SampledFrom([]clusterset.ClusterID{"own", "c0"}).Draw(t, "local")
		d := decide(v)
		got := desiredSlices(d)
		levels, ready := map[string]map[int]bool{}, map[string]bool{}
		for _, slice := range got {
			level, ok := v.Routing.Clusters.Level(v.Routing.Sources, SourceOf(slice))
			if !ok && len(slice.Ports) > 0 {
				t.Fatalf("cluster %s serves, although no source matches it", SourceOf(slice))
			}
			for _, port := range slice.Ports {
				name := *port.Name + string(slice.AddressType)
				if levels[name] == nil {
					levels[name] = map[int]bool{}
				}
				levels[name][level] = true
				for _, e := range slice.Endpoints {
					ready[name] = ready[name] || e.Conditions.Ready == nil || *e.Conditions.Ready
				}
			}
		}
		for name, used := range levels {
			if len(used) > 1 {
				t.Fatalf("levels %v serve %s", slices.Sorted(maps.Keys(used)), name)
			}
		}
		for _, slice := range v.Sources.Hub.Slices {
			_, allowed := v.Routing.Clusters.Level(v.Routing.Sources, slice.Cluster)
			if !allowed || v.states[slice.Cluster] != liveness.Live || preference.AvailabilityOf(slice.Endpoints) != preference.Ready {
				continue
			}
			for _, port := range slice.Ports {
				if name := port.Name + string(slice.AddressType); !ready[name] {
					t.Fatalf("%s is not served, although cluster %s has a ready endpoint", name, slice.Cluster)
				}
			}
		}
		slices.Reverse(v.Sources.Hub.Slices)
		slices.Reverse(v.Mirrored)
		check.Equal(t, "slices of the same sources in another order", got, desiredSlices(decide(v)))
	})
}
