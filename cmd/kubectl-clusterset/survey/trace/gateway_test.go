// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/dryrun"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// The trace names the hop between the gateways of two clusters that breaks a service. spec: G12
func TestGatewaySteps(t *testing.T) {
	status := func(pod, address string, reachable bool) gatewayv1alpha1.GatewayStatus {
		s := gatewayv1alpha1.GatewayStatus{Report: gatewayv1alpha1.GatewayReport{Addresses: []string{address}}}
		s.Name = pod
		s.Report.Clusters = []gatewayv1alpha1.ClusterReachability{{Cluster: "b", Reachable: reachable, Message: "connection refused"}}
		return s
	}
	remote := map[clusterset.ClusterID]gatewayv1alpha1.RemoteGateway{
		"b": {Spec: gatewayv1alpha1.RemoteGatewaySpec{Addresses: []gatewayv1alpha1.Address{{Host: "198.51.100.1", Port: 443}}}},
	}
	two := []string{"10.9.0.1", "10.9.0.2"}
	reporting := func(statuses ...gatewayv1alpha1.GatewayStatus) survey.Gateways {
		return survey.Gateways{Exist: true, Ready: two, All: 2, Statuses: statuses, Remote: remote}
	}
	const other = "cluster b is in network cloud, this cluster in network default, and "
	for name, test := range map[string]struct {
		gateways survey.Gateways
		change   func(*sources.Hub)
		want     string
	}{
		"reached": {
			reporting(status("g1", two[0], true), status("g2", two[1], true)), nil,
			"ok through gateways: 2 of 2 reach those of b at 198.51.100.1:443",
		},
		"reached by one": {
			reporting(status("g1", two[0], true), status("g2", two[1], false)), nil,
			"note 1 of 2 gateways reach those of b; g2: connection refused",
		},
		"reached by none": {reporting(status("g1", two[0], false)), nil, "broken none of 1 gateways reaches those of b: g1: connection refused"},
		"a report of a pod that is gone": {
			reporting(status("g0", "10.9.0.9", false)), nil, "broken no gateway has reported whether it reaches those of b",
		},
		"no gateway is ready": {survey.Gateways{Exist: true, All: 2, Remote: remote}, nil, "broken none of 2 addresses of its gateways is ready, so cluster b is not reached"},
		"unknown":             {survey.Gateways{Exist: true, Ready: two, All: 2}, nil, "broken its gateways do not know those of b, which the hub has"},
		"no address": {
			survey.Gateways{Exist: true, Ready: two, All: 2, Remote: map[clusterset.ClusterID]gatewayv1alpha1.RemoteGateway{"b": {}}},
			nil,
			"broken cluster b publishes no address of its gateways: it can import, but not export to other networks",
		},
		"no gateways": {survey.Gateways{}, nil, "broken " + other + "this cluster has no gateway: if the pods of both reach each other, set one network in both Members"},
		"another source serves": {
			survey.Gateways{},
			func(s *sources.Hub) {
				s.Exports = append(s.Exports, clusterset.Export{Cluster: "c"})
				s.Exporters["c"] = reach.Cluster{}
			},
			"note " + other + "this cluster has no gateway: if the pods of both reach each other, set one network in both Members",
		},
		"direct": {survey.Gateways{}, func(s *sources.Hub) { s.Exporters["b"] = reach.Cluster{} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			http := clusterset.Port{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}
			known := sources.Hub{
				Exports: []clusterset.Export{{
					Cluster: "b", Type: mcsv1beta1.ClusterSetIP, Ports: []clusterset.Port{http}, Available: clusterset.Availability{http.ID(): 1},
				}},
				Exporters: map[clusterset.ClusterID]reach.Cluster{"b": {Network: "cloud", Gateway: true}},
			}
			if test.change != nil {
				test.change(&known)
			}
			v := &memberTrace{
				Result: &dryrun.Result{Sources: sources.Sources{Hub: known}},
				view:   &dryrun.View{Member: &survey.Member{ID: "a"}, Gateways: test.gateways, Store: hub.NewStore("a", clusterset.AddressRanges{})},
			}
			got := ""
			for _, step := range v.gatewaySteps() {
				got += string(step.State) + " " + step.Found
				if step.State != OK && step.Fix == "" {
					t.Errorf("%s has no fix", step.Found)
				}
			}
			check.Equal(t, "steps", test.want, got)
		})
	}
}
