// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

type clusters = []clusterset.ClusterID

// spec: C3, C4, R1, R3, R4, R5
func TestConflicts(t *testing.T) {
	t.Parallel()
	team := func(name string) func(*clusterset.Export) {
		return labels(map[string]string{"team": name, "app": "web"})
	}
	note := func(text string) func(*clusterset.Export) {
		return annotations(map[string]string{"note": text, "a": "b"})
	}
	withApp := func(appProtocol string) func(*clusterset.Export) {
		return ports(clusterset.Port{Name: "http", Protocol: "TCP", Port: 80, AppProtocol: appProtocol})
	}
	cases := map[string]struct {
		exports []clusterset.Export
		want    []merge.Conflict
	}{
		"one export": {
			exports: []clusterset.Export{exported("a", 1)},
		},
		"equal exports of different ages": {
			exports: []clusterset.Export{exported("a", 1, team("x"), note("y")), exported("b", 2, team("x"), note("y"))},
		},
		"no metadata and empty metadata": {
			exports: []clusterset.Export{exported("a", 1), exported("b", 2, labels(map[string]string{}), annotations(map[string]string{}))},
		},
		"the same ports in another order": {
			exports: []clusterset.Export{
				exported("a", 1, ports(tcp("x", 1), tcp("y", 2))), exported("b", 2, ports(tcp("y", 2), tcp("x", 1))),
			},
		},
		"another port": {
			exports: []clusterset.Export{exported("a", 1), exported("b", 2, ports(tcp("https", 443)))},
			want:    []merge.Conflict{{Reason: "PortConflict", Field: "ports", Using: "http:80/TCP, https:443/TCP", Disagree: clusters{"b"}}},
		},
		"one port more": {
			exports: []clusterset.Export{exported("a", 1), exported("b", 2, ports(tcp("http", 80), udp("quic", 443)))},
			want:    []merge.Conflict{{Reason: "PortConflict", Field: "ports", Using: "http:80/TCP, quic:443/UDP", Disagree: clusters{"b"}}},
		},
		"one port less": {
			exports: []clusterset.Export{exported("a", 1, ports(tcp("http", 80), tcp("https", 443))), exported("b", 2)},
			want:    []merge.Conflict{{Reason: "PortConflict", Field: "ports", Using: "http:80/TCP, https:443/TCP", Disagree: clusters{"b"}}},
		},
		"a port without a name, and with one": {
			exports: []clusterset.Export{exported("a", 1, ports(tcp("", 80))), exported("b", 2)},
			want:    []merge.Conflict{{Reason: "PortConflict", Field: "ports", Using: "80/TCP", Disagree: clusters{"b"}}},
		},
		"another application protocol": {
			exports: []clusterset.Export{exported("a", 1, withApp("http")), exported("b", 2, withApp("kubernetes.io/h2c"))},
			want:    []merge.Conflict{{Reason: "PortConflict", Field: "ports", Using: "http:80/TCP", Disagree: clusters{"b"}}},
		},
		"another type": {
			exports: []clusterset.Export{exported("a", 1, sticky(60)), exported("b", 2, headless)},
			want:    []merge.Conflict{{Reason: "TypeConflict", Field: "type", Using: "ClusterSetIP", Disagree: clusters{"b"}}},
		},
		"another type, the headless one older": {
			exports: []clusterset.Export{exported("a", 2, sticky(60)), exported("b", 1, headless)},
			want:    []merge.Conflict{{Reason: "TypeConflict", Field: "type", Using: "Headless", Disagree: clusters{"a"}}},
		},
		"another session affinity": {
			exports: []clusterset.Export{exported("a", 1), exported("b", 2, sticky(0))},
			want:    []merge.Conflict{{Reason: "SessionAffinityConflict", Field: "session affinity", Using: "None", Disagree: clusters{"b"}}},
		},
		"another session affinity timeout": {
			exports: []clusterset.Export{exported("a", 1, sticky(60)), exported("b", 2, sticky(61))},
			want:    []merge.Conflict{{Reason: "SessionAffinityConfigConflict", Field: "session affinity config", Using: "60s", Disagree: clusters{"b"}}},
		},
		"no session affinity timeout": {
			exports: []clusterset.Export{exported("a", 1, sticky(0)), exported("b", 2, sticky(60))},
			want:    []merge.Conflict{{Reason: "SessionAffinityConfigConflict", Field: "session affinity config", Using: "no timeout", Disagree: clusters{"b"}}},
		},
		"other labels": {
			exports: []clusterset.Export{exported("a", 1, team("x")), exported("b", 2, team("y"))},
			want:    []merge.Conflict{{Reason: "LabelsConflict", Field: "exported labels", Using: "app=web, team=x", Disagree: clusters{"b"}}},
		},
		"labels where the oldest has none": {
			exports: []clusterset.Export{exported("a", 1), exported("b", 2, team("y"))},
			want:    []merge.Conflict{{Reason: "LabelsConflict", Field: "exported labels", Using: "none", Disagree: clusters{"b"}}},
		},
		"other annotations": {
			exports: []clusterset.Export{exported("a", 1, note("x")), exported("b", 2, note("y"))},
			want:    []merge.Conflict{{Reason: "AnnotationsConflict", Field: "exported annotations", Using: "a=b, note=x", Disagree: clusters{"b"}}},
		},
		"another internal traffic policy": {
			exports: []clusterset.Export{exported("a", 1), exported("b", 2, local)},
			want:    []merge.Conflict{{Reason: "InternalTrafficPolicyConflict", Field: "internal traffic policy", Using: "Cluster", Disagree: clusters{"b"}}},
		},
		"another traffic distribution": {
			exports: []clusterset.Export{exported("a", 1, distribution("PreferClose")), exported("b", 2)},
			want:    []merge.Conflict{{Reason: "TrafficDistributionConflict", Field: "traffic distribution", Using: "PreferClose", Disagree: clusters{"b"}}},
		},
		"traffic distribution where the oldest asks for none": {
			exports: []clusterset.Export{exported("a", 1), exported("b", 2, distribution("PreferClose"))},
			want:    []merge.Conflict{{Reason: "TrafficDistributionConflict", Field: "traffic distribution", Using: "none", Disagree: clusters{"b"}}},
		},
		"other families": {
			exports: []clusterset.Export{exported("a", 1), exported("b", 2, families(v6))},
			want:    []merge.Conflict{{Reason: "IPFamilyConflict", Field: "IP families", Using: "IPv4, IPv6", Disagree: clusters{"b"}}},
		},
		"those who disagree are named, sorted, the others not": {
			exports: []clusterset.Export{exported("d", 4, local), exported("c", 1), exported("a", 3, local), exported("b", 2)},
			want:    []merge.Conflict{{Reason: "InternalTrafficPolicyConflict", Field: "internal traffic policy", Using: "Cluster", Disagree: clusters{"a", "d"}}},
		},
		"headless exports have no affinity to disagree on": {
			exports: []clusterset.Export{
				exported("a", 1, headless),
				exported("b", 2, headless, func(e *clusterset.Export) { e.Affinity = clusterset.Affinity{Mode: "ClientIP", TimeoutSeconds: 5} }),
			},
		},
		"everything at once": {
			exports: []clusterset.Export{
				exported("a", 1),
				exported("b", 2, ports(tcp("https", 443)), families(v6), sticky(60), team("y"), note("y"), local, distribution("PreferClose")),
				exported("c", 3, headless),
			},
			want: []merge.Conflict{
				{Reason: "PortConflict", Field: "ports", Using: "http:80/TCP, https:443/TCP", Disagree: clusters{"b"}},
				{Reason: "TypeConflict", Field: "type", Using: "ClusterSetIP", Disagree: clusters{"c"}},
				{Reason: "SessionAffinityConflict", Field: "session affinity", Using: "None", Disagree: clusters{"b"}},
				{Reason: "SessionAffinityConfigConflict", Field: "session affinity config", Using: "no timeout", Disagree: clusters{"b"}},
				{Reason: "LabelsConflict", Field: "exported labels", Using: "none", Disagree: clusters{"b"}},
				{Reason: "AnnotationsConflict", Field: "exported annotations", Using: "none", Disagree: clusters{"b"}},
				{Reason: "InternalTrafficPolicyConflict", Field: "internal traffic policy", Using: "Cluster", Disagree: clusters{"b"}},
				{Reason: "TrafficDistributionConflict", Field: "traffic distribution", Using: "none", Disagree: clusters{"b"}},
				{Reason: "IPFamilyConflict", Field: "IP families", Using: "IPv4, IPv6", Disagree: clusters{"b"}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "conflicts", tc.want, mustMerge(t, tc.exports...).Conflicts)
		})
	}
}
