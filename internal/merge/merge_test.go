// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var (
	key   = clusterset.ServiceKey{Namespace: "shop", Name: "web"}
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	v4   = []corev1.IPFamily{corev1.IPv4Protocol}
	v6   = []corev1.IPFamily{corev1.IPv6Protocol}
	dual = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
)

// exported returns the export of a cluster that was created in this minute, after the changes.
func exported(id clusterset.ClusterID, minute int, changes ...func(*clusterset.Export)) clusterset.Export {
	export := clusterset.Export{
		Cluster:               id,
		Key:                   key,
		Age:                   start.Add(time.Duration(minute) * time.Minute),
		Type:                  mcsv1beta1.ClusterSetIP,
		Ports:                 []clusterset.Port{tcp("http", 80)},
		IPFamilies:            v4,
		Affinity:              clusterset.Affinity{Mode: corev1.ServiceAffinityNone},
		InternalTrafficPolicy: corev1.ServiceInternalTrafficPolicyCluster,
	}
	for _, change := range changes {
		change(&export)
	}
	return export
}

func headless(e *clusterset.Export) {
	e.Type, e.Affinity = mcsv1beta1.Headless, clusterset.Affinity{}
}

func ports(ports ...clusterset.Port) func(*clusterset.Export) {
	return func(e *clusterset.Export) { e.Ports = ports }
}

func families(families []corev1.IPFamily) func(*clusterset.Export) {
	return func(e *clusterset.Export) { e.IPFamilies = families }
}

func sticky(seconds int32) func(*clusterset.Export) {
	return func(e *clusterset.Export) {
		e.Affinity = clusterset.Affinity{Mode: corev1.ServiceAffinityClientIP, TimeoutSeconds: seconds}
	}
}

func labels(labels map[string]string) func(*clusterset.Export) {
	return func(e *clusterset.Export) { e.Labels = labels }
}

func annotations(annotations map[string]string) func(*clusterset.Export) {
	return func(e *clusterset.Export) { e.Annotations = annotations }
}

func local(e *clusterset.Export) {
	e.InternalTrafficPolicy = corev1.ServiceInternalTrafficPolicyLocal
}

func distribution(value string) func(*clusterset.Export) {
	return func(e *clusterset.Export) { e.TrafficDistribution = value }
}

func tcp(name string, port int32) clusterset.Port {
	return clusterset.Port{Name: name, Protocol: corev1.ProtocolTCP, Port: port}
}

func udp(name string, port int32) clusterset.Port {
	return clusterset.Port{Name: name, Protocol: corev1.ProtocolUDP, Port: port}
}

func mustMerge(t testing.TB, exports ...clusterset.Export) merge.Merged {
	t.Helper()
	merged, ok := merge.Merge(exports)
	if !ok {
		t.Fatal("nothing is merged")
	}
	return merged
}

func TestMergeOfNothing(t *testing.T) {
	t.Parallel()
	for name, exports := range map[string][]clusterset.Export{"nil": nil, "empty": {}} {
		if merged, ok := merge.Merge(exports); ok {
			t.Errorf("%s: merged %v", name, merged)
		}
	}
}

// spec: E2, R3, R4
func TestOldestWins(t *testing.T) {
	t.Parallel()
	// The younger export comes first and its cluster has the smaller ID, so only the age decides.
	young := exported("a", 2, headless, families(v6), local, distribution("PreferClose"),
		labels(map[string]string{"team": "young", "extra": "young"}), annotations(map[string]string{"note": "young"}))
	old := exported("b", 1, families(v4), sticky(60),
		labels(map[string]string{"team": "old"}), annotations(map[string]string{"note": "old", "more": "old"}))
	old.TrafficDistribution = "PreferSameZone"

	got := mustMerge(t, young, old)
	got.Conflicts = nil // TestConflicts
	want := merge.Merged{
		Key:                   key,
		Clusters:              []clusterset.ClusterID{"a", "b"},
		Oldest:                "b",
		Type:                  mcsv1beta1.ClusterSetIP,
		Ports:                 []clusterset.Port{tcp("http", 80)},
		IPFamilies:            dual,
		Affinity:              clusterset.Affinity{Mode: corev1.ServiceAffinityClientIP, TimeoutSeconds: 60},
		InternalTrafficPolicy: corev1.ServiceInternalTrafficPolicyCluster,
		TrafficDistribution:   "PreferSameZone",
		Labels:                map[string]string{"team": "old"},
		Annotations:           map[string]string{"note": "old", "more": "old"},
		PortNames: map[clusterset.ClusterID]map[string]string{
			"a": {"http": "http"}, "b": {"http": "http"},
		},
	}
	check.Equal(t, "merged", want, got)
}

// spec: R3, R6
func TestOldest(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		exports []clusterset.Export
		want    clusterset.ClusterID
	}{
		"the only one":                         {[]clusterset.Export{exported("b", 5)}, "b"},
		"the older":                            {[]clusterset.Export{exported("a", 2), exported("b", 1)}, "b"},
		"of equally old ones the smaller ID":   {[]clusterset.Export{exported("b", 1), exported("a", 1), exported("c", 1)}, "a"},
		"age counts before the ID":             {[]clusterset.Export{exported("a", 2), exported("c", 1), exported("b", 1)}, "b"},
		"when the oldest leaves, the next one": {[]clusterset.Export{exported("a", 3), exported("b", 2)}, "b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "oldest", tc.want, mustMerge(t, tc.exports...).Oldest)
		})
	}
}

// spec: R1, R2, R6
func TestPorts(t *testing.T) {
	t.Parallel()
	type names = map[clusterset.ClusterID]map[string]string
	cases := map[string]struct {
		exports []clusterset.Export
		want    []clusterset.Port
		serves  names
	}{
		"the same ports": {
			exports: []clusterset.Export{exported("a", 1), exported("b", 2)},
			want:    []clusterset.Port{tcp("http", 80)},
			serves:  names{"a": {"http": "http"}, "b": {"http": "http"}},
		},
		"other ports are united, the oldest's first": {
			exports: []clusterset.Export{
				exported("a", 2, ports(tcp("admin", 8080))),
				exported("b", 1, ports(tcp("http", 80), tcp("grpc", 90))),
			},
			want:   []clusterset.Port{tcp("http", 80), tcp("grpc", 90), tcp("admin", 8080)},
			serves: names{"a": {"admin": "admin"}, "b": {"http": "http", "grpc": "grpc"}},
		},
		"one number, two protocols": {
			exports: []clusterset.Export{
				exported("a", 1, ports(tcp("dns-tcp", 53), udp("dns", 53))),
				exported("b", 2, ports(udp("dns", 53))),
			},
			want:   []clusterset.Port{tcp("dns-tcp", 53), udp("dns", 53)},
			serves: names{"a": {"dns-tcp": "dns-tcp", "dns": "dns"}, "b": {"dns": "dns"}},
		},
		"the same port under two names is served under the older": {
			exports: []clusterset.Export{exported("a", 2, ports(tcp("web", 80))), exported("b", 1)},
			want:    []clusterset.Port{tcp("http", 80)},
			serves:  names{"a": {"web": "http"}, "b": {"http": "http"}},
		},
		"the same name with another number is lost": {
			exports: []clusterset.Export{exported("a", 2, ports(tcp("http", 8080))), exported("b", 1)},
			want:    []clusterset.Port{tcp("http", 80)},
			serves:  names{"a": {}, "b": {"http": "http"}},
		},
		"the same name with another protocol is lost": {
			exports: []clusterset.Export{exported("a", 2, ports(udp("http", 80))), exported("b", 1)},
			want:    []clusterset.Port{tcp("http", 80)},
			serves:  names{"a": {}, "b": {"http": "http"}},
		},
		"a younger port that hits one by name and another by number is served as the latter": {
			exports: []clusterset.Export{
				exported("a", 2, ports(tcp("http", 90))),
				exported("b", 1, ports(tcp("http", 80), tcp("grpc", 90))),
			},
			want:   []clusterset.Port{tcp("http", 80), tcp("grpc", 90)},
			serves: names{"a": {"http": "grpc"}, "b": {"http": "http", "grpc": "grpc"}},
		},
		"names swapped": {
			exports: []clusterset.Export{
				exported("a", 1, ports(tcp("x", 80), tcp("y", 90))),
				exported("b", 2, ports(tcp("y", 80), tcp("x", 90))),
			},
			want:   []clusterset.Port{tcp("x", 80), tcp("y", 90)},
			serves: names{"a": {"x": "x", "y": "y"}, "b": {"y": "x", "x": "y"}},
		},
		"a lost port that a third cluster brings under a free name is served": {
			exports: []clusterset.Export{
				exported("a", 1),
				exported("b", 2, ports(tcp("http", 8080))),
				exported("c", 3, ports(tcp("alt", 8080))),
			},
			want:   []clusterset.Port{tcp("http", 80), tcp("alt", 8080)},
			serves: names{"a": {"http": "http"}, "b": {"http": "alt"}, "c": {"alt": "alt"}},
		},
		"unnamed and named ports together": {
			exports: []clusterset.Export{
				exported("a", 1, ports(tcp("", 80))),
				exported("b", 2, ports(tcp("http", 80), tcp("metrics", 9090))),
				exported("c", 3, ports(tcp("", 443))),
			},
			want:   []clusterset.Port{tcp("", 80), tcp("metrics", 9090)},
			serves: names{"a": {"": ""}, "b": {"http": "", "metrics": "metrics"}, "c": {}},
		},
		"of equally old exports the smaller ID's port is kept": {
			exports: []clusterset.Export{exported("b", 1, ports(tcp("http", 81))), exported("a", 1, ports(tcp("http", 82)))},
			want:    []clusterset.Port{tcp("http", 82)},
			serves:  names{"a": {"http": "http"}, "b": {}},
		},
		"after the oldest left, the next one's port counts": {
			exports: []clusterset.Export{exported("c", 3, ports(tcp("http", 83))), exported("b", 2, ports(tcp("http", 82)))},
			want:    []clusterset.Port{tcp("http", 82)},
			serves:  names{"b": {"http": "http"}, "c": {}},
		},
		"the application protocol is the oldest's": {
			exports: []clusterset.Export{
				exported("a", 2, ports(clusterset.Port{Name: "http", Protocol: "TCP", Port: 80, AppProtocol: "young"})),
				exported("b", 1, ports(clusterset.Port{Name: "http", Protocol: "TCP", Port: 80, AppProtocol: "old"})),
			},
			want:   []clusterset.Port{{Name: "http", Protocol: "TCP", Port: 80, AppProtocol: "old"}},
			serves: names{"a": {"http": "http"}, "b": {"http": "http"}},
		},
		"a headless service without ports": {
			exports: []clusterset.Export{exported("a", 1, headless, ports()), exported("b", 2, headless, ports(tcp("sql", 5432)))},
			want:    []clusterset.Port{tcp("sql", 5432)},
			serves:  names{"a": {}, "b": {"sql": "sql"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := mustMerge(t, tc.exports...)
			check.Equal(t, "ports", tc.want, got.Ports)
			check.Equal(t, "port names", tc.serves, got.PortNames)
		})
	}
}

// spec: R5
func TestFamilies(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		oldest, younger []corev1.IPFamily
		want            []corev1.IPFamily
		conflict        bool
	}{
		"the same":                       {v4, v4, v4, false},
		"the same in another order":      {[]corev1.IPFamily{"IPv6", "IPv4"}, dual, []corev1.IPFamily{"IPv6", "IPv4"}, false},
		"the younger has one more":       {v6, dual, []corev1.IPFamily{"IPv6", "IPv4"}, true},
		"the younger has one less":       {dual, v6, dual, true},
		"nothing in common":              {v6, v4, []corev1.IPFamily{"IPv6", "IPv4"}, true},
		"the oldest's come first always": {v4, []corev1.IPFamily{"IPv6", "IPv4"}, dual, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := mustMerge(t, exported("a", 2, families(tc.younger)), exported("b", 1, families(tc.oldest)))
			check.Equal(t, "families", tc.want, got.IPFamilies)
			if conflict := len(got.Conflicts) > 0; conflict != tc.conflict {
				t.Errorf("conflicts %v, want any: %t", got.Conflicts, tc.conflict)
			}
		})
	}
}

// The selection is that of the oldest export, also if it has none: with that of another, pods could serve that the oldest does not
// select. A different selection is no conflict.
//
// spec: D8
func TestSelection(t *testing.T) {
	t.Parallel()
	one, other := &clusterset.Selection{Labels: map[string]string{"app": "one"}}, &clusterset.Selection{Labels: map[string]string{"app": "other"}}
	selecting := func(s *clusterset.Selection) func(*clusterset.Export) {
		return func(e *clusterset.Export) { e.Selection = s }
	}
	for name, tc := range map[string]struct {
		exports []clusterset.Export
		want    *clusterset.Selection
	}{
		"the oldest's":            {[]clusterset.Export{exported("a", 2, selecting(one)), exported("b", 1, selecting(other))}, other},
		"none where it has none":  {[]clusterset.Export{exported("a", 2, selecting(one)), exported("b", 1)}, nil},
		"none where it has no IP": {[]clusterset.Export{exported("a", 1, selecting(one), headless)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			merged := mustMerge(t, tc.exports...)
			if merged.Selection != tc.want {
				t.Errorf("selection %v, want %v", merged.Selection, tc.want)
			}
			if len(merged.Conflicts) > 0 {
				t.Errorf("conflicts: %v", merged.Conflicts)
			}
		})
	}
}
