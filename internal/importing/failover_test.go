// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
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
				if SourceOf(s) == "a" {
					s.Endpoints[0].Conditions = test.conditions
				}
			}
			v.Mirrored = condensed(existing)
			v.Sources.Hub = sources.Hub{Listed: true}
			v.missing = map[clusterset.ClusterID]sources.Missing{"a": {Export: true, Slices: []string{"0"}}, "b": {Export: true}}
			v.ServiceImport = importOf(held80, "a", "b")
			v.path = nil
			v.Routing = prefer(v, clusters("a"), policyv1alpha1.Source{Any: true})
			d := decide(v)
			got := map[string]bool{}
			for _, s := range desiredSlices(d) {
				if len(s.Ports) > 0 {
					got[string(SourceOf(s))] = true
				}
			}
			check.Equal(t, "sources that serve", test.want, got)
			c := v.Routing.condition(d)
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
	v.Families = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	v.Sources.Gateways.Slices = append(v.Sources.Gateways.Slices, clusterset.Slice{
		Cluster: "own", ID: "g6", AddressType: "IPv6", Endpoints: []clusterset.Endpoint{{Addresses: []string{"fd00::9"}}},
	})
	v.chooseGateways()
	v.Routing = prefer(v, clusters("a"), policyv1alpha1.Source{Any: true})
	d := decide(v)
	const want = "ServiceImportRoutingPolicy p: source 1 serves http/IPv4 from a"
	c := v.Routing.condition(d)
	check.Equal(t, "condition", []string{conditions.ReasonFirstSource, want}, []string{c.Reason, c.Message})
}
