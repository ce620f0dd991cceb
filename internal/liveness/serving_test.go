// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package liveness_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// source returns a slice with one endpoint, ready by default.
func source(id clusterset.ClusterID, state liveness.State, family discoveryv1.AddressType, ports ...string) liveness.Source {
	s := liveness.Source{State: state, Slice: clusterset.Slice{
		Cluster: id, ID: string(family), AddressType: family,
		Endpoints: []clusterset.Endpoint{{Addresses: []string{"10.0.0.1"}, Ready: clusterset.True}},
	}}
	for i, name := range ports {
		s.Ports = append(s.Ports, clusterset.EndpointPort{Name: name, Protocol: corev1.ProtocolTCP, Port: int32(8080 + i)})
	}
	return s
}

func mirrored(s liveness.Source, ports ...string) liveness.Source {
	s.Mirrored = append([]string{}, ports...)
	return s
}

func unready(s liveness.Source) liveness.Source {
	s.Endpoints = []clusterset.Endpoint{{Addresses: []string{"10.0.0.1"}, Ready: clusterset.False}}
	return s
}

// spec: D9, R2
func TestServing(t *testing.T) {
	const v4, v6 = discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	live, silent, unknown := liveness.Live, liveness.Silent, liveness.Unknown
	for name, test := range map[string]struct {
		kind     mcsv1beta1.ServiceImportType
		policies liveness.Policies
		sources  []liveness.Source
		want     []string
	}{
		"the living serve": {
			sources: []liveness.Source{source("a", live, v4, "http"), source("b", live, v4, "http")},
			want:    []string{"a IPv4 http", "b IPv4 http"},
		},
		"the silent leave where the living serve": {
			sources: []liveness.Source{source("a", silent, v4, "http"), source("b", live, v4, "http")},
			want:    []string{"b IPv4 http"},
		},
		"however many are silent": {
			sources: []liveness.Source{
				source("a", silent, v4, "http"), source("b", live, v4, "http"), source("c", silent, v4, "http"),
				source("d", silent, v4, "http"), source("e", silent, v4, "http"),
			},
			want: []string{"b IPv4 http"},
		},
		"the silent are the last resort": {
			sources: []liveness.Source{source("a", silent, v4, "http"), unready(source("b", live, v4, "http"))},
			want:    []string{"a IPv4 http", "b IPv4 http"},
		},
		"in each family by itself": {
			sources: []liveness.Source{
				source("a", silent, v4, "http"), source("a", silent, v6, "http"), source("b", live, v4, "http"),
			},
			want: []string{"a IPv6 http", "b IPv4 http"},
		},
		"and for each port": {
			sources: []liveness.Source{source("a", silent, v4, "http", "admin"), source("b", live, v4, "http")},
			want:    []string{"a IPv4 admin", "b IPv4 http"},
		},
		"under its merged name": {
			sources: []liveness.Source{source("a", silent, v4, "web"), source("b", live, v4, "http")},
			want:    []string{"b IPv4 http"},
		},
		"a port that a living cluster lost to a conflict is not served by it": {
			sources: []liveness.Source{source("a", silent, v4, "http"), source("b", live, v4, "lost")},
			want:    []string{"a IPv4 http", "b IPv4 lost"},
		},
		"no member live": {
			sources: []liveness.Source{source("a", silent, v4, "http"), source("b", silent, v4, "http")},
			want:    []string{"a IPv4 http", "b IPv4 http"},
		},
		"what is there of the unknown stays": {
			sources: []liveness.Source{mirrored(source("a", unknown, v4, "web"), "http"), source("b", live, v4, "http")},
			want:    []string{"a IPv4 web", "b IPv4 http"},
		},
		"at the ports that are there": {
			sources: []liveness.Source{mirrored(source("a", unknown, v4, "http", "admin"), "admin"), source("b", live, v4, "http")},
			want:    []string{"a IPv4 admin", "b IPv4 http"},
		},
		"what is not there of them does not come": {
			sources: []liveness.Source{source("a", unknown, v4, "http"), source("b", live, v4, "http")},
			want:    []string{"b IPv4 http"},
		},
		"unless no other member serves": {
			sources: []liveness.Source{source("a", unknown, v4, "http")},
			want:    []string{"a IPv4 http"},
		},
		"a port that is not mirrored is left out if another unknown member's is": {
			sources: []liveness.Source{source("a", unknown, v4, "http"), mirrored(source("b", unknown, v4, "http"), "http")},
			want:    []string{"b IPv4 http"},
		},
		"and comes if that one's is another port": {
			sources: []liveness.Source{source("a", unknown, v4, "http"), mirrored(source("b", unknown, v4, "http", "admin"), "admin")},
			want:    []string{"a IPv4 http", "b IPv4 http admin"},
		},
		"or that one has nothing ready": {
			sources: []liveness.Source{source("a", unknown, v4, "http"), unready(mirrored(source("b", unknown, v4, "http"), "http"))},
			want:    []string{"a IPv4 http", "b IPv4 http"},
		},
		"or that one is silent": {
			sources: []liveness.Source{source("a", unknown, v4, "http"), mirrored(source("b", silent, v4, "http"), "http")},
			want:    []string{"a IPv4 http", "b IPv4 http"},
		},
		"but not if only its first port is another": {
			sources: []liveness.Source{mirrored(source("a", unknown, v4, "admin", "http"), "http"), source("b", unknown, v4, "http")},
			want:    []string{"a IPv4 admin http"},
		},
		"and a new slice comes beside mirrored ones of its own cluster": {
			sources: []liveness.Source{source("a", unknown, v4, "http"), mirrored(source("a", unknown, v4, "http"), "http")},
			want:    []string{"a IPv4 http", "a IPv4 http"},
		},
		"both stay if both are mirrored": {
			sources: []liveness.Source{mirrored(source("a", unknown, v4, "http"), "http"), mirrored(source("b", unknown, v4, "http"), "http")},
			want:    []string{"a IPv4 http", "b IPv4 http"},
		},
		"headless services keep the names of the silent": {
			kind:    mcsv1beta1.Headless,
			sources: []liveness.Source{source("a", silent, v4), source("b", live, v4)},
			want:    []string{"a IPv4", "b IPv4"},
		},
		"or lose them, if that is wanted": {
			kind: mcsv1beta1.Headless, policies: liveness.Policies{mcsv1beta1.Headless: liveness.Withdraw},
			sources: []liveness.Source{source("a", silent, v4), source("a", silent, v6), source("b", live, v4)},
			want:    []string{"a IPv6", "b IPv4"},
		},
		"of the unknown, what is there stays without ports too": {
			kind: mcsv1beta1.Headless, policies: liveness.Policies{mcsv1beta1.Headless: liveness.Withdraw},
			sources: []liveness.Source{
				mirrored(source("a", unknown, v4)), source("b", live, v4), source("c", unknown, v4), mirrored(source("d", silent, v4)),
			},
			want: []string{"a IPv4", "b IPv4"},
		},
		"all are kept, if that is wanted": {
			policies: liveness.Policies{mcsv1beta1.ClusterSetIP: liveness.Keep},
			sources:  []liveness.Source{source("a", silent, v4, "http"), source("b", live, v4, "http")},
			want:     []string{"a IPv4 http", "b IPv4 http"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := merge.Merged{Type: mcsv1beta1.ClusterSetIP, PortNames: map[clusterset.ClusterID]map[string]string{
				"a": {"http": "http", "web": "http", "admin": "admin"},
				"b": {"http": "http"}, "c": {"http": "http"}, "d": {"http": "http"}, "e": {"http": "http"},
			}}
			policies := liveness.DefaultPolicies()
			if test.kind != "" {
				m.Type = test.kind
			}
			if test.policies != nil {
				policies = test.policies
			}
			before := fmt.Sprintf("%+v", test.sources)
			var got []string
			for _, s := range liveness.Serving(m, policies, test.sources) {
				text := fmt.Sprintf("%s %s", s.Cluster, s.AddressType)
				for _, port := range s.Ports {
					text += " " + port.Name
				}
				got = append(got, text)
			}
			check.Equal(t, "slices in use", test.want, got)
			if after := fmt.Sprintf("%+v", test.sources); after != before {
				t.Errorf("the argument was changed:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

// TestKeptPorts: a kept slice of a silent member loses the ports that live members serve.
//
// spec: D9
func TestKeptPorts(t *testing.T) {
	const v4, v6 = discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	m := merge.Merged{Type: mcsv1beta1.ClusterSetIP, PortNames: map[clusterset.ClusterID]map[string]string{"b": {"http": "http"}, "c": {"admin": "admin"}}}
	served := liveness.ServedBy(m, []liveness.Source{
		source("b", liveness.Live, v4, "http"), source("c", liveness.Silent, v4, "admin"), unready(source("b", liveness.Live, v6, "http")),
	})
	for name, test := range map[string]struct {
		policy liveness.Policy
		state  liveness.State
		family discoveryv1.AddressType
		want   []string
	}{
		"silent":                  {liveness.Withdraw, liveness.Silent, v4, []string{"admin"}},
		"silent, another family":  {liveness.Withdraw, liveness.Silent, v6, []string{"http", "admin"}},
		"silent, to be kept":      {liveness.Keep, liveness.Silent, v4, []string{"http", "admin"}},
		"live":                    {liveness.Withdraw, liveness.Live, v4, []string{"http", "admin"}},
		"unknown since the start": {liveness.Withdraw, liveness.Unknown, v4, []string{"http", "admin"}},
	} {
		kept := liveness.Kept{State: test.state, Family: test.family, Ports: []string{"http", "admin"}}
		check.Equal(t, name, test.want, liveness.KeptPorts(test.policy, served, kept))
	}
}
