// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset/clustersettest"
)

// rendered returns mirrored slices of a size, with as many endpoints in each as the sources have.
func rendered(size clustersettest.Size) []*discoveryv1.EndpointSlice {
	var result []*discoveryv1.EndpointSlice
	for _, source := range size.Slices() {
		one := slice("derived-1-" + string(source.Cluster) + "-" + source.ID)
		one.Endpoints = nil
		for _, e := range source.Endpoints {
			one.Endpoints = append(one.Endpoints, discoveryv1.Endpoint{
				Addresses: e.Addresses, Zone: &e.Zone,
				Conditions: discoveryv1.EndpointConditions{Ready: e.Ready.Pointer(), Serving: e.Serving.Pointer(), Terminating: e.Terminating.Pointer()},
			})
		}
		result = append(result, one)
	}
	return result
}

// BenchmarkPlan compares all slices of a service: without a change, as in a resync, and with one changed endpoint.
func BenchmarkPlan(b *testing.B) {
	for name, change := range map[string]func([]*discoveryv1.EndpointSlice) int{
		"same": func([]*discoveryv1.EndpointSlice) int { return 0 },
		"changed": func(slices []*discoveryv1.EndpointSlice) int {
			slices[0].Endpoints[0].Addresses = []string{"10.1.255.255"}
			return 1
		},
	} {
		for _, size := range clustersettest.Sizes() {
			b.Run(name+"/"+size.String(), func(b *testing.B) {
				desired, observed := rendered(size), rendered(size)
				for _, o := range observed {
					stored(o, "7")
				}
				want := change(desired)
				b.ReportAllocs()
				for b.Loop() {
					if changes := plan.EndpointSlices(desired, observed); len(changes) != want {
						b.Fatal(changes)
					}
				}
			})
		}
	}
}
