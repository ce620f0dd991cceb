// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tombolo-mcs/tombolo/internal/preference"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: P1
func TestPreferred(t *testing.T) {
	t.Parallel()
	type ports = map[preference.Port]preference.Chosen
	v4, v6, unnamed := preference.Port{Name: "http", Family: "IPv4"}, preference.Port{Name: "http", Family: "IPv6"}, preference.Port{Family: "IPv4"}
	ready := func(level int) preference.Chosen {
		return preference.Chosen{Level: level, Availability: preference.Ready}
	}
	var many []clusterset.ClusterID
	for i := range 12 {
		many = append(many, clusterset.ClusterID(fmt.Sprintf("c%02d", i)))
	}
	for name, test := range map[string]struct {
		ports   ports
		waiting []preference.Return
		serving map[int][]clusterset.ClusterID
		want    string
	}{
		"nothing is offered":    {nil, nil, nil, "False/NoSource: no source of ServiceImportRoutingPolicy p has an available endpoint"},
		"nothing is available":  {ports{v4: {Level: 1}}, nil, nil, "False/NoSource: no source of ServiceImportRoutingPolicy p has an available endpoint"},
		"the first source":      {ports{v4: ready(0), v6: ready(0)}, nil, map[int][]clusterset.ClusterID{0: {"b", "a", "b"}}, "True/FirstSource: ServiceImportRoutingPolicy p: source 1 serves http/IPv4, http/IPv6 from a, b"},
		"one port of a later":   {ports{v4: ready(0), unnamed: ready(2)}, nil, map[int][]clusterset.ClusterID{0: {"a"}, 2: {"c"}}, "False/Fallback: ServiceImportRoutingPolicy p: source 1 serves http/IPv4 from a; source 3 serves unnamed/IPv4 from c"},
		"one is not available":  {ports{v4: ready(0), v6: {Level: 1}}, nil, map[int][]clusterset.ClusterID{0: {"a"}}, "True/FirstSource: ServiceImportRoutingPolicy p: source 1 serves http/IPv4 from a"},
		"the first one is not":  {ports{v4: {Level: 1}, v6: ready(0)}, nil, map[int][]clusterset.ClusterID{0: {"a"}}, "True/FirstSource: ServiceImportRoutingPolicy p: source 1 serves http/IPv6 from a"},
		"terminating endpoints": {ports{v4: {Level: 0, Availability: preference.Terminating}}, nil, map[int][]clusterset.ClusterID{0: {"a"}}, "True/FirstSource: ServiceImportRoutingPolicy p: source 1 serves http/IPv4 from a"},
		"an earlier one waits": {
			ports{v4: ready(1)},
			[]preference.Return{{Port: v4}},
			map[int][]clusterset.ClusterID{1: {"b"}},
			"False/Fallback: ServiceImportRoutingPolicy p: source 2 serves http/IPv4 from b; an earlier source is available, and serves when it has been so for 10s",
		},
		"many clusters": {ports{v4: ready(0)}, nil, map[int][]clusterset.ClusterID{0: many}, "True/FirstSource: ServiceImportRoutingPolicy p: source 1 serves http/IPv4 from c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Preferred("ServiceImportRoutingPolicy p", preference.Choice{Ports: test.ports, Waiting: test.waiting}, test.serving, nil)
			if diff := cmp.Diff(test.want, fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message)); diff != "" || c.Type != TypePreferred {
				t.Errorf("condition %s (-want +got):\n%s", c.Type, diff)
			}
		})
	}
}

// TestPreferredUnmatched: if the first source does not serve, the message names what its policy names and no member has.
//
// spec: P1
func TestPreferredUnmatched(t *testing.T) {
	t.Parallel()
	v4 := preference.Port{Name: "http", Family: "IPv4"}
	unmatched := []string{"source 1 names clusters that are no members: zz"}
	serving := map[int][]clusterset.ClusterID{0: {"a"}, 1: {"b"}}
	for level, want := range map[int]string{
		-1: "NoSource: no source of p has an available endpoint; source 1 names clusters that are no members: zz",
		0:  "FirstSource: p: source 1 serves http/IPv4 from a",
		1:  "Fallback: p: source 2 serves http/IPv4 from b; source 1 names clusters that are no members: zz",
	} {
		choice := preference.Choice{Ports: map[preference.Port]preference.Chosen{v4: {Level: level, Availability: preference.Ready}}}
		if level < 0 {
			choice.Ports = nil
		}
		c := Preferred("p", choice, serving, unmatched)
		if got := c.Reason + ": " + c.Message; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
