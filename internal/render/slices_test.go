// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// summary returns the ports and endpoints of each mirrored slice, as text.
func summary(mirrored []*discoveryv1.EndpointSlice) map[string]string {
	result := map[string]string{}
	for _, slice := range mirrored {
		text := string(slice.AddressType)
		for _, port := range slice.Ports {
			text += " " + *port.Name
		}
		for _, endpoint := range slice.Endpoints {
			text += " " + fmt.Sprint(endpoint.Addresses)
			if endpoint.Hints != nil {
				text += "@" + endpoint.Hints.ForZones[0].Name
			}
		}
		result[slice.Name] = text
	}
	return result
}

// spec: E1, D4, D5, D6, I5, R2
func TestSlices(t *testing.T) {
	t.Parallel()
	portless := source("berlin", "1", "", at("10.1.0.1"))
	portless.Ports = nil
	debugged := source("berlin", "1", "debug", at("10.1.0.1"))
	debugged.Ports = append(debugged.Ports, clusterset.EndpointPort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 8080})
	for name, tc := range map[string]struct {
		exports []clusterset.Export
		site    render.Site
		sources []clusterset.Slice
		want    map[string]string
	}{
		"several slices of several clusters": {
			exports: []clusterset.Export{exported("berlin", 1), exported("paris", 2)},
			sources: []clusterset.Slice{
				source("paris", "1", "http", at("10.2.0.1")), source("berlin", "2", "http", at("10.1.0.2")), source("berlin", "1", "http", at("10.1.0.1")),
			},
			want: map[string]string{
				"derived-1-berlin-1": "IPv4 http [10.1.0.1]", "derived-1-berlin-2": "IPv4 http [10.1.0.2]", "derived-1-paris-1": "IPv4 http [10.2.0.1]",
			},
		},
		"a cluster that does not export contributes nothing": {
			exports: []clusterset.Export{exported("berlin", 1)},
			sources: []clusterset.Slice{source("berlin", "1", "http", at("10.1.0.1")), source("paris", "1", "http", at("10.2.0.1"))},
			want:    map[string]string{"derived-1-berlin-1": "IPv4 http [10.1.0.1]"},
		},
		"an empty slice is mirrored": {
			exports: []clusterset.Export{exported("berlin", 1)},
			sources: []clusterset.Slice{source("berlin", "1", "http")},
			want:    map[string]string{"derived-1-berlin-1": "IPv4 http"},
		},
		"families that the import has not are left out": {
			exports: []clusterset.Export{exported("berlin", 1, families(v4v6))},
			site:    render.Site{IPFamilies: v6},
			sources: []clusterset.Slice{source("berlin", "1", "http", at("10.1.0.1")), in6(source("berlin", "2", "http", at("fd01::1")))},
			want:    map[string]string{"derived-1-berlin-2": "IPv6 http [fd01::1]"},
		},
		"a headless import has all families": {
			exports: []clusterset.Export{exported("berlin", 1, families(v4v6), headless)},
			site:    render.Site{IPFamilies: v6},
			sources: []clusterset.Slice{source("berlin", "1", "http", at("10.1.0.1")), in6(source("berlin", "2", "http", at("fd01::1")))},
			want:    map[string]string{"derived-1-berlin-1": "IPv4 http [10.1.0.1]", "derived-1-berlin-2": "IPv6 http [fd01::1]"},
		},
		"a cluster whose port lost contributes nothing": {
			exports: []clusterset.Export{exported("berlin", 1), exported("paris", 2, ports(tcp("http", 81)))},
			sources: []clusterset.Slice{source("paris", "1", "http", at("10.2.0.1")), source("berlin", "1", "http", at("10.1.0.1"))},
			want:    map[string]string{"derived-1-berlin-1": "IPv4 http [10.1.0.1]"},
		},
		"a port that has another name there is renamed": {
			exports: []clusterset.Export{exported("berlin", 1), exported("paris", 2, ports(tcp("web", 80)))},
			sources: []clusterset.Slice{source("paris", "1", "web", at("10.2.0.1"))},
			want:    map[string]string{"derived-1-paris-1": "IPv4 http [10.2.0.1]"},
		},
		"a port without a name has that of the derived Service, and that of the import": {
			exports: []clusterset.Export{exported("berlin", 1, ports(tcp("", 80)))},
			sources: []clusterset.Slice{source("berlin", "1", "", at("10.1.0.1"))},
			want:    map[string]string{"derived-1-berlin-1": "IPv4 unnamed  [10.1.0.1]"},
		},
		"a headless port keeps the empty name": {
			exports: []clusterset.Export{exported("berlin", 1, headless, ports(tcp("", 80))), exported("paris", 2, headless, ports(tcp("web", 80)))},
			sources: []clusterset.Slice{source("berlin", "1", "", at("10.1.0.1")), source("paris", "1", "web", at("10.2.0.1"))},
			want:    map[string]string{"derived-1-berlin-1": "IPv4  [10.1.0.1]", "derived-1-paris-1": "IPv4  [10.2.0.1]"},
		},
		"a headless service's slice without ports is mirrored": {
			exports: []clusterset.Export{exported("berlin", 1, headless, ports())},
			sources: []clusterset.Slice{portless},
			want:    map[string]string{"derived-1-berlin-1": "IPv4 [10.1.0.1]"},
		},
		"a headless slice whose ports have lost is not": {
			exports: []clusterset.Export{exported("berlin", 1, headless), exported("paris", 2, headless, ports(tcp("http", 81)))},
			sources: []clusterset.Slice{source("paris", "1", "http", at("10.2.0.1")), source("berlin", "1", "http", at("10.1.0.1"))},
			want:    map[string]string{"derived-1-berlin-1": "IPv4 http [10.1.0.1]"},
		},
		"a ClusterSetIP service's is not": {
			exports: []clusterset.Export{exported("berlin", 1)},
			sources: []clusterset.Slice{portless},
			want:    map[string]string{},
		},
		"ports that are no Service's are left out": {
			exports: []clusterset.Export{exported("berlin", 1)},
			sources: []clusterset.Slice{debugged},
			want:    map[string]string{"derived-1-berlin-1": "IPv4 http [10.1.0.1]"},
		},
		"endpoints are sorted": {
			exports: []clusterset.Export{exported("berlin", 1)},
			sources: []clusterset.Slice{source("berlin", "1", "http", at("10.1.0.3"), at("10.1.0.1"), at("10.1.0.2"))},
			want:    map[string]string{"derived-1-berlin-1": "IPv4 http [10.1.0.1] [10.1.0.2] [10.1.0.3]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := tc.site
			site.DerivedName = "derived-1"
			if site.IPFamilies == nil {
				site.IPFamilies = v4
			}
			before := fmt.Sprint(tc.sources)
			got := render.Slices(merged(t, tc.exports...), site, tc.sources)
			check.Equal(t, "slices", tc.want, summary(got))
			if !slices.IsSortedFunc(got, func(a, b *discoveryv1.EndpointSlice) int { return slices.Compare([]string{a.Name}, []string{b.Name}) }) {
				t.Error("the slices are not sorted by name")
			}
			check.Equal(t, "the sources, before and after", before, fmt.Sprint(tc.sources))
		})
	}
}

// spec: D6
func TestHints(t *testing.T) {
	t.Parallel()
	unready := clusterset.Endpoint{Addresses: []string{"10.1.0.9"}, Ready: clusterset.False}
	unset := clusterset.Endpoint{Addresses: []string{"10.1.0.9"}}
	of := func(changes ...func(*clusterset.Export)) []clusterset.Export {
		return []clusterset.Export{exported("a", 1, changes...)}
	}
	near := of(distribution("PreferClose"))
	inZone := []clusterset.Slice{source("a", "1", "http", zoned("10.1.0.1", "x"))}
	withoutHint, withHint := map[string]string{"d-a-1": "IPv4 http [10.1.0.1]"}, map[string]string{"d-a-1": "IPv4 http [10.1.0.1]@x"}
	for name, tc := range map[string]struct {
		exports []clusterset.Export
		sources []clusterset.Slice
		want    map[string]string
	}{
		"not asked for": {of(), inZone, withoutHint},
		"PreferClose": {
			near,
			[]clusterset.Slice{source("a", "1", "http", zoned("10.1.0.1", "x"), zoned("10.1.0.2", "y"))},
			map[string]string{"d-a-1": "IPv4 http [10.1.0.1]@x [10.1.0.2]@y"},
		},
		"PreferSameZone": {of(distribution("PreferSameZone")), inZone, withHint},
		"PreferSameNode means the same zone across clusters": {of(distribution("PreferSameNode")), inZone, withHint},
		"a value that is not known":                          {of(distribution("PreferMoon")), inZone, withoutHint},
		"a headless service":                                 {of(headless, distribution("PreferClose")), inZone, withoutHint},
		"one ready endpoint without a zone, in another cluster": {
			exports: []clusterset.Export{exported("a", 1, distribution("PreferClose")), exported("b", 2, distribution("PreferClose"))},
			sources: []clusterset.Slice{source("a", "1", "http", zoned("10.1.0.1", "x")), source("b", "1", "http", at("10.2.0.1"))},
			want:    map[string]string{"d-a-1": "IPv4 http [10.1.0.1]", "d-b-1": "IPv4 http [10.2.0.1]"},
		},
		"one endpoint of unset readiness, which means ready, without a zone": {
			exports: near,
			sources: []clusterset.Slice{source("a", "1", "http", zoned("10.1.0.1", "x"), unset)},
			want:    map[string]string{"d-a-1": "IPv4 http [10.1.0.1] [10.1.0.9]"},
		},
		"one endpoint without a zone that is not ready": {
			exports: near,
			sources: []clusterset.Slice{source("a", "1", "http", zoned("10.1.0.1", "x"), unready)},
			want:    map[string]string{"d-a-1": "IPv4 http [10.1.0.1]@x [10.1.0.9]"},
		},
		"one without a zone that receives no traffic, its port having lost": {
			exports: []clusterset.Export{
				exported("a", 1, distribution("PreferClose")), exported("b", 2, distribution("PreferClose"), ports(tcp("http", 81))),
			},
			sources: []clusterset.Slice{source("a", "1", "http", zoned("10.1.0.1", "x")), source("b", "1", "http", at("10.2.0.1"))},
			want:    map[string]string{"d-a-1": "IPv4 http [10.1.0.1]@x"},
		},
		"a slice of gateways, which have no zone, that does not serve": {
			exports: []clusterset.Export{exported("a", 1, distribution("PreferClose")), exported("b", 2, distribution("PreferClose"))},
			sources: []clusterset.Slice{
				source("a", "1", "http", zoned("10.1.0.1", "x")),
				{Cluster: "b", ID: "1", AddressType: "IPv4", Endpoints: []clusterset.Endpoint{at("10.9.0.1")}, Listen: map[int32]int32{80: 10000}},
			},
			want: map[string]string{"d-a-1": "IPv4 http [10.1.0.1]@x", "d-b-1": "IPv4 [10.9.0.1]"},
		},
		"each family by itself": {
			exports: []clusterset.Export{exported("a", 1, families(v4v6), distribution("PreferClose"))},
			sources: []clusterset.Slice{source("a", "1", "http", zoned("10.1.0.1", "x")), in6(source("a", "2", "http", at("fd01::1")))},
			want:    map[string]string{"d-a-1": "IPv4 http [10.1.0.1]@x", "d-a-2": "IPv6 http [fd01::1]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := render.Site{IPFamilies: v4v6, DerivedName: "d"}
			check.Equal(t, "slices", tc.want, summary(render.Slices(merged(t, tc.exports...), site, tc.sources)))
		})
	}
}

// Fields that the API server would default are set, so that they do not differ from those of existing objects.
// spec: D3, R3, I3, I4, I5
func TestServiceFields(t *testing.T) {
	t.Parallel()
	site := render.Site{IPFamilies: v4, DerivedName: "derived-1"}
	sticky := func(seconds int32) func(*clusterset.Export) {
		return func(e *clusterset.Export) {
			e.Affinity = clusterset.Affinity{Mode: corev1.ServiceAffinityClientIP, TimeoutSeconds: seconds}
		}
	}
	policy := func(p corev1.ServiceInternalTrafficPolicy) func(*clusterset.Export) {
		return func(e *clusterset.Export) { e.InternalTrafficPolicy = p }
	}
	type fields struct {
		Affinity     corev1.ServiceAffinity
		Timeout      int32
		Policy       corev1.ServiceInternalTrafficPolicy
		Distribution string
	}
	of := func(affinity corev1.ServiceAffinity, config *corev1.SessionAffinityConfig, p *corev1.ServiceInternalTrafficPolicy, d *string) fields {
		f := fields{Affinity: affinity, Policy: *p}
		if config != nil {
			f.Timeout = *config.ClientIP.TimeoutSeconds
		}
		if d != nil {
			f.Distribution = *d
		}
		return f
	}
	for name, tc := range map[string]struct {
		export clusterset.Export
		want   fields
		// inImport are those of the ServiceImport, if they differ.
		inImport *fields
	}{
		"plain":            {exported("a", 1), fields{"None", 0, "Cluster", ""}, nil},
		"nothing is said":  {exported("a", 1, policy(""), func(e *clusterset.Export) { e.Affinity = clusterset.Affinity{} }), fields{"None", 0, "Cluster", ""}, nil},
		"session affinity": {exported("a", 1, sticky(60)), fields{"ClientIP", 60, "Cluster", ""}, nil},
		"its default":      {exported("a", 1, sticky(0)), fields{"ClientIP", 10800, "Cluster", ""}, nil},
		"traffic policies": {exported("a", 1, policy("Local"), distribution("PreferClose")), fields{"None", 0, "Local", "PreferClose"}, nil},
		"headless": {
			exported("a", 1, headless, policy("Local"), distribution("PreferClose")),
			fields{"None", 0, "Local", "PreferClose"},
			&fields{"", 0, "Local", "PreferClose"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := merged(t, tc.export)
			s := render.Service(m, site).Spec
			check.Equal(t, "Service", tc.want, of(s.SessionAffinity, s.SessionAffinityConfig, s.InternalTrafficPolicy, s.TrafficDistribution))
			if s.Selector != nil || s.Type != corev1.ServiceTypeClusterIP {
				t.Errorf("type %s, selector %v", s.Type, s.Selector)
			}
			want := tc.want
			if tc.inImport != nil {
				want = *tc.inImport
			}
			i := render.ServiceImport(m, site, nil).Spec
			check.Equal(t, "ServiceImport", want, of(i.SessionAffinity, i.SessionAffinityConfig, i.InternalTrafficPolicy, i.TrafficDistribution))
			if i.Type != m.Type || i.Ports == nil {
				t.Errorf("type %q, ports %v", i.Type, i.Ports)
			}
		})
	}
}

// TestSliceNamesNeverCollide: for all cluster IDs and all slice IDs that importers accept, mirrored slices have different names.
//
// spec: D4, D5
func TestSliceNamesNeverCollide(t *testing.T) {
	t.Parallel()
	type origin struct {
		derived string
		cluster clusterset.ClusterID
		id      string
	}
	names := map[string]origin{}
	take := func(from origin) {
		merged, _ := merge.Merge([]clusterset.Export{exported(from.cluster, 1)})
		for _, slice := range render.Slices(merged, render.Site{IPFamilies: v4, DerivedName: from.derived}, []clusterset.Slice{
			source(from.cluster, from.id, "http", at("10.1.0.1")),
		}) {
			if other, taken := names[slice.Name]; taken {
				t.Errorf("%s is for %+v and for %+v", slice.Name, other, from)
			}
			names[slice.Name] = from
		}
	}
	for _, derived := range []string{"derived-1", "derived-11", "derived-12", clusterset.LongDerivedName("web")} {
		for _, cluster := range []clusterset.ClusterID{"prod", "prod-eu", "eu-prod", "eu", "prod-eu-0123456789", "1-prod", "1", "0123456789"} {
			for _, id := range []string{
				"0123456789", "abcdef0123", "eu-0123456789", "eu-0123456789-abcdef0123", "0123456789-abcdef0123",
				"prod-0123456789", "eu-1234567", "1234567", "0-12345678", "12345678", "-123456789",
			} {
				if clusterset.IsSliceID(id) {
					take(origin{derived, cluster, id})
				}
			}
		}
	}
	check.Equal(t, "number of names", 4*8*2, len(names))
}

// TestIsLocal: a mirrored slice shows whether its endpoints are those of the cluster that it is in, with and without nodes, and without
// endpoints.
//
// spec: D6, E3
func TestIsLocal(t *testing.T) {
	t.Parallel()
	onNode := at("10.1.0.2")
	onNode.NodeName = "node-1"
	for name, test := range map[string]struct {
		slice  clusterset.Slice
		marked bool
	}{
		"endpoints on nodes":      {source("berlin", "1", "http", at("10.1.0.1"), onNode), false},
		"endpoints without nodes": {source("berlin", "1", "http", at("10.1.0.1")), true},
		"no endpoints":            {source("berlin", "1", "http"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, local := range []bool{true, false} {
				test.slice.Local = local
				if !local {
					for i := range test.slice.Endpoints {
						test.slice.Endpoints[i].NodeName = "" // a record has none
					}
				}
				slice := render.Slices(merged(t, exported("berlin", 1)), render.Site{DerivedName: "derived-1", IPFamilies: v4}, []clusterset.Slice{test.slice})[0]
				check.Equal(t, fmt.Sprintf("local %t: it shows", local), local, render.IsLocal(slice))
				_, marked := slice.Annotations[clusterset.AnnotationLocal]
				check.Equal(t, fmt.Sprintf("local %t: it has an annotation", local), local && test.marked, marked)
			}
		})
	}
}
