// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
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
	reporting := func(statuses ...gatewayv1alpha1.GatewayStatus) gateways {
		return gateways{exist: true, ready: two, all: 2, statuses: statuses, remote: remote}
	}
	const other = "cluster b is in network cloud, this cluster in network default, and "
	for name, test := range map[string]struct {
		gateways gateways
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
		"no gateway is ready": {gateways{exist: true, all: 2, remote: remote}, nil, "broken none of 2 addresses of its gateways is ready, so cluster b is not reached"},
		"unknown":             {gateways{exist: true, ready: two, all: 2}, nil, "broken its gateways do not know those of b, which the hub has"},
		"no address": {
			gateways{exist: true, ready: two, all: 2, remote: map[clusterset.ClusterID]gatewayv1alpha1.RemoteGateway{"b": {}}},
			nil,
			"broken cluster b publishes no address of its gateways: it can import, but not export to other networks",
		},
		"no gateways": {gateways{}, nil, "broken " + other + "this cluster has no gateway: if the pods of both reach each other, set one network in both Members"},
		"another source serves": {
			gateways{},
			func(s *sources.Hub) {
				s.Exports = append(s.Exports, clusterset.Export{Cluster: "c"})
				s.Exporters["c"] = reach.Cluster{}
			},
			"note " + other + "this cluster has no gateway: if the pods of both reach each other, set one network in both Members",
		},
		"direct": {gateways{}, func(s *sources.Hub) { s.Exporters["b"] = reach.Cluster{} }, ""},
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
				DryRunResult: &DryRunResult{Sources: sources.Sources{Hub: known}},
				view:         &MemberView{Member: &Member{ID: "a"}, gateways: test.gateways, store: hub.NewStore("a", clusterset.AddressRanges{})},
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

// A member that publishes no addresses has the endpoints that it says are available. spec: W2, G12
func TestExporterStatus(t *testing.T) {
	export := clusterset.Export{Cluster: "b", Available: clusterset.Availability{{Port: 80}: 1, {Port: 81}: 2}}
	check.Equal(t, "without addresses", ExporterStatus{"b", 2, 2, true}, exporterStatus(export, nil))
	export.Available = clusterset.Availability{{Port: 80}: 1}
	check.Equal(t, "without addresses, less than the limit", ExporterStatus{"b", 1, 1, false}, exporterStatus(export, nil))
	counts := map[clusterset.ClusterID]ExporterStatus{"b": {Endpoints: 5, ReadyEndpoints: 3}}
	check.Equal(t, "with addresses", ExporterStatus{"b", 5, 3, false}, exporterStatus(export, counts))
}

// status lists the clusters that no gateway of a member reaches, and imports that cannot use a source. spec: G12, W4
func TestGatewayProblems(t *testing.T) {
	serviceImport := mcsv1beta1.ServiceImport{}
	serviceImport.Namespace, serviceImport.Name, serviceImport.Labels = "shop", "web", map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}
	serviceImport.Status.Conditions = []metav1.Condition{conditions.ImportReady(nil, nil), conditions.SourceUnusable([]error{errors.New("port 53/UDP of cluster b is left out")})}
	a := assessment{hub: &Hub{Records: hub.NewStore("", clusterset.AddressRanges{})}}
	a.problemsOfObjects(MemberObjects{
		ID: "a", Context: "ctx", Imports: []mcsv1beta1.ServiceImport{serviceImport}, Gateways: map[clusterset.ClusterID]GatewayReach{"b": {Ready: 1, Known: true, Unreached: 1, Message: "g1: connection refused"}, "c": {Ready: 1, Reached: 1}},
	})
	var got []string
	for _, p := range a.problems {
		got = append(got, string(p.Severity)+" "+string(p.Reason)+" "+string(p.Member)+" "+p.Service)
		if p.Message == "" || p.Next == "" {
			t.Errorf("%+v", p)
		}
	}
	want := []string{"warning SourceUnusable a shop/web", "error GatewayUnreachable a "}
	check.Equal(t, "problems", want, got)
}
