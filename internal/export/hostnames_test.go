// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: G9
func TestHostnames(t *testing.T) {
	t.Parallel()
	tcp := func(name string, port int32) clusterset.EndpointPort {
		return clusterset.EndpointPort{Name: name, Protocol: corev1.ProtocolTCP, Port: port}
	}
	named := func(hostnames ...string) (result []clusterset.Endpoint) {
		for _, hostname := range hostnames {
			result = append(result, clusterset.Endpoint{Hostname: hostname})
		}
		return result
	}
	slice := func(endpoints []clusterset.Endpoint, ports ...clusterset.EndpointPort) clusterset.Slice {
		return clusterset.Slice{Ports: ports, Endpoints: endpoints}
	}
	unready := named("db-1")
	unready[0].Ready, unready[0].Serving, unready[0].Terminating = clusterset.False, clusterset.True, clusterset.True
	ports := []clusterset.Port{{Name: "http", Protocol: "TCP", Port: 80}, {Name: "peer", Protocol: "TCP", Port: 81}, {Name: "dns", Protocol: "UDP", Port: 53}}
	for name, test := range map[string]struct {
		slices []clusterset.Slice
		want   clusterset.Hostnames
	}{
		"no slices":           {nil, clusterset.Hostnames{}},
		"one for all without": {[]clusterset.Slice{slice(named("", "", "db-0"), tcp("http", 8080))}, clusterset.Hostnames{"": {80: 8080}, "db-0": {80: 8080}}},
		"one behind one that is not ready": {
			[]clusterset.Slice{slice(append(unready, named("db-0")...), tcp("http", 8080))}, clusterset.Hostnames{"db-0": {80: 8080}},
		},
		"what is not ready":     {[]clusterset.Slice{slice(unready, tcp("http", 8080))}, clusterset.Hostnames{}},
		"no TCP port":           {[]clusterset.Slice{slice(named("db-0"), clusterset.EndpointPort{Name: "dns", Protocol: "UDP", Port: 53})}, clusterset.Hostnames{}},
		"a port with no number": {[]clusterset.Slice{slice(named("db-0"), tcp("http", 0), tcp("peer", 8081))}, clusterset.Hostnames{"db-0": {81: 8081}}},
		"both IP families": {
			[]clusterset.Slice{slice(named("db-0"), tcp("http", 8080)), slice(named("db-0"), tcp("http", 8080))}, clusterset.Hostnames{"db-0": {80: 8080}},
		},
		"each its own ports": {
			[]clusterset.Slice{slice(named("db-0"), tcp("http", 8080)), slice(named("db-1"), tcp("http", 9090), tcp("peer", 9091))},
			clusterset.Hostnames{"db-0": {80: 8080}, "db-1": {80: 9090, 81: 9091}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, leftOut, err := Hostnames(ports, test.slices)
			if diff := cmp.Diff(test.want, got); diff != "" || leftOut != 0 || err != nil {
				t.Errorf("%d left out, %v; hostnames (-want +got):\n%s", leftOut, err, diff)
			}
		})
	}
}

// The first hostnames in order are published, as a StatefulSet numbers its pods.
// spec: G9
func TestTooManyHostnames(t *testing.T) {
	t.Parallel()
	all := clusterset.Slice{Ports: []clusterset.EndpointPort{{Name: "http", Protocol: "TCP", Port: 80}}}
	for i := range 112 {
		all.Endpoints = append(all.Endpoints, clusterset.Endpoint{Hostname: fmt.Sprint("db-", 111-i)})
	}
	got, leftOut, err := Hostnames([]clusterset.Port{{Name: "http", Protocol: "TCP", Port: 80}}, []clusterset.Slice{all})
	if len(got) != 100 || got["db-99"] == nil || got["db-100"] != nil || leftOut != 12 {
		t.Errorf("%d hostnames, %d left out", len(got), leftOut)
	}
	const want = "12 of 112 hostnames, the last in order: a cluster publishes at most 100 hostnames of a headless service for other networks"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// spec: G9
func TestOfHostname(t *testing.T) {
	t.Parallel()
	slices := []clusterset.Slice{{ID: "1", Endpoints: []clusterset.Endpoint{{Hostname: "db-0"}, {Hostname: "db-1"}, {}}}, {ID: "2"}}
	want := []clusterset.Slice{{ID: "1", Endpoints: []clusterset.Endpoint{{Hostname: "db-1"}}}, {ID: "2"}}
	check.Equal(t, "slices of db-1", want, OfHostname("db-1", slices))
	check.Equal(t, "endpoints of the argument", 3, len(slices[0].Endpoints))
}
