// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

func slice(name string, changes ...func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
	result := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"kubernetes.io/service-name": "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, change := range changes {
		change(result)
	}
	return result
}

// exportedSlice returns the Slice of the EndpointSlice above, after the changes.
func exportedSlice(name string, changes ...func(*clusterset.Slice)) clusterset.Slice {
	result := clusterset.Slice{
		Cluster: "berlin", ID: clusterset.SliceID(name), AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []clusterset.EndpointPort{}, Endpoints: []clusterset.Endpoint{},
	}
	for _, change := range changes {
		change(&result)
	}
	return result
}

// spec: D5, D6, D7
func TestSlices(t *testing.T) {
	t.Parallel()
	stamped := func(stamp string) func(*discoveryv1.EndpointSlice) {
		return func(s *discoveryv1.EndpointSlice) {
			s.Annotations = map[string]string{"endpoints.kubernetes.io/last-change-trigger-time": stamp}
		}
	}
	cases := map[string]struct {
		sources []*discoveryv1.EndpointSlice
		want    []clusterset.Slice
	}{
		"none": {nil, []clusterset.Slice{}},
		"everything that crosses": {
			sources: []*discoveryv1.EndpointSlice{slice("web-1", stamped("2026-01-02T03:04:05.678901234+01:00"), func(s *discoveryv1.EndpointSlice) {
				s.Ports = []discoveryv1.EndpointPort{
					{Name: new("http"), Protocol: new(corev1.ProtocolSCTP), Port: new(int32(8080)), AppProtocol: new("kubernetes.io/h2c")},
					{},
				}
				s.Endpoints = []discoveryv1.Endpoint{
					{
						Addresses:  []string{"10.1.0.1", "10.1.0.2"},
						Conditions: discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)},
						Hostname:   new("web-0"), NodeName: new("node-1"), Zone: new("eu-1a"),
						TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "web-0"},
						Hints:     &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "eu-1b"}}},
					},
					{Addresses: []string{"10.1.0.3"}},
				}
			})},
			want: []clusterset.Slice{exportedSlice("web-1", func(s *clusterset.Slice) {
				s.Trigger = time.Date(2026, 1, 2, 2, 4, 5, 678901234, time.UTC)
				s.Ports = []clusterset.EndpointPort{
					{Name: "http", Protocol: corev1.ProtocolSCTP, Port: 8080, AppProtocol: "kubernetes.io/h2c"},
					{Protocol: corev1.ProtocolTCP},
				}
				s.Endpoints = []clusterset.Endpoint{
					{
						Addresses: []string{"10.1.0.1", "10.1.0.2"}, Hostname: "web-0", NodeName: "node-1", Zone: "eu-1a",
						Ready: clusterset.False, Serving: clusterset.True, Terminating: clusterset.True,
					},
					{Addresses: []string{"10.1.0.3"}, Ready: clusterset.Unset, Serving: clusterset.Unset, Terminating: clusterset.Unset},
				}
			})},
		},
		"both families, sorted by ID, no names": {
			sources: []*discoveryv1.EndpointSlice{
				slice("web-1"),
				slice("web-2", func(s *discoveryv1.EndpointSlice) { s.AddressType = discoveryv1.AddressTypeFQDN }),
				slice("web-3", func(s *discoveryv1.EndpointSlice) { s.AddressType = discoveryv1.AddressTypeIPv6 }),
				slice("web-4"),
			},
			want: slices.SortedFunc(slices.Values([]clusterset.Slice{
				exportedSlice("web-1"),
				exportedSlice("web-3", func(s *clusterset.Slice) { s.AddressType = discoveryv1.AddressTypeIPv6 }),
				exportedSlice("web-4"),
			}), func(a, b clusterset.Slice) int { return slices.Compare([]string{a.ID}, []string{b.ID}) }),
		},
		"zones that are none": {
			sources: []*discoveryv1.EndpointSlice{slice("web-1", func(s *discoveryv1.EndpointSlice) {
				s.Endpoints = []discoveryv1.Endpoint{
					{Addresses: []string{"10.1.0.1"}, Zone: new("eu/1a")},
					{Addresses: []string{"10.1.0.2"}, Zone: new(strings.Repeat("z", 64))},
					{Addresses: []string{"10.1.0.3"}, Zone: new("EU_1.a")},
					{Addresses: []string{"10.1.0.4"}, Zone: new("")},
				}
			})},
			want: []clusterset.Slice{exportedSlice("web-1", func(s *clusterset.Slice) {
				s.Endpoints = []clusterset.Endpoint{
					{Addresses: []string{"10.1.0.1"}},
					{Addresses: []string{"10.1.0.2"}},
					{Addresses: []string{"10.1.0.3"}, Zone: "EU_1.a"},
					{Addresses: []string{"10.1.0.4"}},
				}
			})},
		},
		"a trigger time that Kubernetes did not write": {
			sources: []*discoveryv1.EndpointSlice{slice("web-1", stamped("yesterday"))},
			want:    []clusterset.Slice{exportedSlice("web-1")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 { // in any order
				check.Equal(t, "slices", tc.want, export.Slices("berlin", tc.sources))
				slices.Reverse(tc.sources)
			}
		})
	}
}

// spec: D5
func TestManyEndpointsInManySlices(t *testing.T) {
	t.Parallel()
	var sources []*discoveryv1.EndpointSlice
	want := map[string]bool{}
	for i := range 25 {
		sources = append(sources, slice(fmt.Sprintf("web-%d", i), func(s *discoveryv1.EndpointSlice) {
			for j := range 100 {
				address := fmt.Sprintf("10.1.%d.%d", i, j)
				want[address] = true
				s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
			}
		}))
	}
	got := map[string]bool{}
	ids := map[string]bool{}
	for _, s := range export.Slices("berlin", sources) {
		ids[s.ID] = true
		for _, endpoint := range s.Endpoints {
			got[endpoint.Addresses[0]] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(ids) != len(sources) {
		t.Errorf("%d slices of %d; addresses (-want +got):\n%s", len(ids), len(sources), diff)
	}
}

// The result shares no memory with the sources, which may be in a cache.
func TestSlicesShareNothing(t *testing.T) {
	t.Parallel()
	source := slice("web-1", func(s *discoveryv1.EndpointSlice) {
		s.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}}}
	})
	before := source.DeepCopy()
	export.Slices("berlin", []*discoveryv1.EndpointSlice{source})[0].Endpoints[0].Addresses[0] = "changed"
	check.Equal(t, "the source is changed", before, source)
}

func TestInRanges(t *testing.T) {
	t.Parallel()
	ranges := clusterset.AddressRanges{Allowed: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd01::/48")}}
	endpoints := func(addresses ...[]string) func(*clusterset.Slice) {
		return func(s *clusterset.Slice) {
			for _, a := range addresses {
				s.Endpoints = append(s.Endpoints, clusterset.Endpoint{Addresses: a, Zone: "eu-1a", Ready: clusterset.True})
			}
		}
	}
	v6 := func(s *clusterset.Slice) { s.AddressType = discoveryv1.AddressTypeIPv6 }
	cases := map[string]struct {
		sources []clusterset.Slice
		want    []clusterset.Slice
		refused []string
	}{
		"none": {nil, []clusterset.Slice{}, nil},
		"all may leave": {
			sources: []clusterset.Slice{exportedSlice("web-1", endpoints([]string{"10.1.0.1"})), exportedSlice("web-2", v6, endpoints([]string{"fd01::1"}))},
			want:    []clusterset.Slice{exportedSlice("web-1", endpoints([]string{"10.1.0.1"})), exportedSlice("web-2", v6, endpoints([]string{"fd01::1"}))},
		},
		"one endpoint goes, the others stay": {
			sources: []clusterset.Slice{exportedSlice("web-1", endpoints([]string{"10.1.0.1"}, []string{"10.2.0.1"}, []string{"10.1.0.2"}))},
			want:    []clusterset.Slice{exportedSlice("web-1", endpoints([]string{"10.1.0.1"}, []string{"10.1.0.2"}))},
			refused: []string{"10.2.0.1 is outside the cluster's pod and node CIDRs"},
		},
		"one address goes, its endpoint stays": {
			sources: []clusterset.Slice{exportedSlice("web-1", endpoints([]string{"10.2.0.1", "10.1.0.1"}))},
			want:    []clusterset.Slice{exportedSlice("web-1", endpoints([]string{"10.1.0.1"}))},
			refused: []string{"10.2.0.1 is outside the cluster's pod and node CIDRs"},
		},
		"all go, the slice stays": {
			sources: []clusterset.Slice{exportedSlice("web-1", v6, endpoints([]string{"fe80::1"}, []string{"10.1.0.1"}))},
			want:    []clusterset.Slice{exportedSlice("web-1", v6)},
			refused: []string{"fe80::1 is loopback, link-local, multicast, broadcast or unspecified", "10.1.0.1 is no IPv6 address"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := fmt.Sprint(tc.sources)
			got, refused := export.InRanges(tc.sources, ranges)
			check.Equal(t, "slices", tc.want, got)
			check.Equal(t, "refused", tc.refused, check.Messages(refused))
			check.Equal(t, "the input, before and after", before, fmt.Sprint(tc.sources))
		})
	}
}

// spec: D5
func TestHostNames(t *testing.T) {
	t.Parallel()
	fqdn := func(s *discoveryv1.EndpointSlice) { s.AddressType = discoveryv1.AddressTypeFQDN }
	for name, tc := range map[string]struct {
		sources []*discoveryv1.EndpointSlice
		want    []string
	}{
		"no slices":      {nil, nil},
		"addresses only": {[]*discoveryv1.EndpointSlice{slice("web-1")}, nil},
		"some, sorted":   {[]*discoveryv1.EndpointSlice{slice("web-3", fqdn), slice("web-1"), slice("web-2", fqdn)}, []string{"web-2", "web-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "hostnames", tc.want, export.HostNames(tc.sources))
		})
	}
}
