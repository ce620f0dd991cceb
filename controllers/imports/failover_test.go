// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/reach"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
	"github.com/tombolo-mcs/tombolo/pkg/preference"
)

// condensed returns slices as the cache stores them.
func condensed(slices []*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
	var result []*discoveryv1.EndpointSlice
	for _, s := range slices {
		stored := s.DeepCopy()
		stored.Endpoints = plan.Condense(stored.Endpoints)
		result = append(result, stored)
	}
	return result
}

// While the hub does not have the records of the preferred source, its slice is kept, and what the cache stores of it says whether it
// has available endpoints.
//
// spec: P1, E3
func TestKeptSliceWithoutReadyEndpoints(t *testing.T) {
	t.Parallel()
	onlyA, onlyB := map[string]bool{"a": true}, map[string]bool{"b": true}
	for name, test := range map[string]struct {
		conditions discoveryv1.EndpointConditions
		want       map[string]bool
		reason     string
	}{
		"ready":       {discoveryv1.EndpointConditions{Ready: new(true)}, onlyA, conditions.ReasonFirstSource},
		"not said":    {discoveryv1.EndpointConditions{}, onlyA, conditions.ReasonFirstSource},
		"unready":     {discoveryv1.EndpointConditions{Ready: new(false)}, onlyB, conditions.ReasonFallback},
		"terminating": {discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}, onlyB, conditions.ReasonFallback},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := behindGateway()
			existing := desiredSlices(decide(v))
			for _, s := range existing {
				if sourceOf(s) == "a" {
					s.Endpoints[0].Conditions = test.conditions
				}
			}
			v.mirrored = condensed(existing)
			v.sources.Hub = hub.Service{Listed: true}
			v.missing = map[clusterset.ClusterID]hub.Missing{"a": {Export: true, Slices: []string{"0"}}, "b": {Export: true}}
			v.serviceImport = importOf(held80, "a", "b")
			v.path = nil
			v.routing = prefer(v, clusters("a"), policyv1alpha1.Source{Any: true})
			d := decide(v)
			got := map[string]bool{}
			for _, s := range desiredSlices(d) {
				if len(s.Ports) > 0 {
					got[string(sourceOf(s))] = true
				}
			}
			check.Equal(t, "sources that serve", test.want, got)
			c := v.routing.condition(d)
			check.Equal(t, "reason of condition "+c.Message, test.reason, c.Reason)
		})
	}
}

// Gateways have all IP families of their cluster. A family that the import does not have has no level.
//
// spec: P1, G2
func TestPreferredFamilies(t *testing.T) {
	t.Parallel()
	v := behindGateway() // both exporters have IPv4
	v.localFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	v.sources.Gateways.Slices = append(v.sources.Gateways.Slices, clusterset.Slice{
		Cluster: "own", ID: "g6", AddressType: "IPv6", Endpoints: []clusterset.Endpoint{{Addresses: []string{"fd00::9"}}},
	})
	v.chooseGateways(&reach.Reach{})
	v.routing = prefer(v, clusters("a"), policyv1alpha1.Source{Any: true})
	d := decide(v)
	const want = "ServiceImportRoutingPolicy p: source 1 serves http/IPv4 from a"
	c := v.routing.condition(d)
	check.Equal(t, "condition", []string{conditions.ReasonFirstSource, want}, []string{c.Reason, c.Message})
}

// The time for which a source has been available does not count for another one that an edited policy has at its place.
//
// spec: P1
func TestReturnsOfAnEditedPolicy(t *testing.T) {
	t.Parallel()
	returns, now := NewReturns(), time.Unix(0, 0)
	first := preference.Return{Port: preference.Port{Name: "http", Family: "IPv4"}, Level: 0}
	before, edited := []policyv1alpha1.Source{clusters("a"), {Any: true}}, []policyv1alpha1.Source{clusters("c"), {Any: true}}
	returns.update(key, before, []preference.Return{first}, now)
	now = now.Add(preference.ReturnDelay)
	check.Equal(t, "the source has been available for", preference.ReturnDelay, returns.available(key, before, now)[first])
	check.Equal(t, "another source at its place has been available for", time.Duration(0), returns.available(key, edited, now)[first])
	returns.update(key, edited, []preference.Return{first}, now)
	now = now.Add(time.Second)
	check.Equal(t, "after the edit the source has been available for", time.Second, returns.available(key, edited, now)[first])
}
