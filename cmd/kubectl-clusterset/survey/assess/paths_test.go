// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// status says how an importer reaches each exporter; what is not known is a problem, and never a path that works. spec: G12, W4
func TestPaths(t *testing.T) {
	t.Parallel()
	http := clusterset.Port{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}
	cloud := reach.Cluster{Network: "cloud", Gateway: true}
	by := func(path Path, message string) []PathStatus { return []PathStatus{{"a", "b", path, message}} }
	for name, test := range map[string]struct {
		importer survey.MemberObjects
		exporter reach.Cluster
		want     []PathStatus
		problem  string
	}{
		"direct":   {importer: survey.MemberObjects{}},
		"gateways": {gatewaysOf(survey.GatewayReach{Ready: 2, Known: true, Reached: 2}), cloud, by(PathGateways, ""), ""},
		"one of two gateways": {
			gatewaysOf(survey.GatewayReach{Ready: 2, Known: true, Reached: 1, Unreached: 1, Message: "g2: connection refused"}),
			cloud, by(PathGateways, "g2: connection refused"), "",
		},
		"no gateway reaches it": {
			gatewaysOf(survey.GatewayReach{Ready: 2, Known: true, Unreached: 2, Message: "g2: connection refused"}),
			cloud, by(PathGatewaysUnreached, "g2: connection refused"),
			"error GatewayUnreachable No gateway of a reaches those of b: g2: connection refused",
		},
		"no gateway is ready": {
			gatewaysOf(survey.GatewayReach{Known: true}), cloud, by(PathGatewaysUnreached, "none of its gateways is ready"),
			"error GatewayUnreachable No gateway of a reaches those of b: none of its gateways is ready",
		},
		"the gateways have not read the other cluster": {
			gatewaysOf(survey.GatewayReach{Ready: 2}), cloud, by(PathGatewaysUnreached, "its gateways do not know those of b"),
			"error GatewayUnreachable No gateway of a reaches those of b: its gateways do not know those of b",
		},
		"no gateway has reported": {
			gatewaysOf(survey.GatewayReach{Ready: 2, Known: true}),
			cloud, by(PathNotKnown, "none of its gateways has reported whether it reaches those of b"),
			"warning NotKnown It is not known whether the gateways of a reach those of b: none of its gateways has reported whether it reaches those of b",
		},
		"the gateways cannot be read": {
			survey.MemberObjects{Errs: []error{errors.New("forbidden")}},
			cloud, by(PathNotKnown, "forbidden"),
			"warning NotKnown It is not known whether the gateways of a reach those of b: forbidden",
		},
		"no gateways": {survey.MemberObjects{}, cloud, by(PathNone,
			"cluster b is in network cloud, this cluster in network default, and this cluster has no gateway: if the pods of both reach each other, set one network in both Members",
		), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.importer.ID = "a"
			a := assessment{
				hub: &survey.Hub{Records: hub.NewStore("", clusterset.AddressRanges{})}, objects: map[clusterset.ClusterID]survey.MemberObjects{"a": test.importer},
				unreached: map[clusterset.ClusterID]map[clusterset.ClusterID]PathStatus{},
			}
			got := a.paths(sources.Hub{
				Exports: []clusterset.Export{
					{Cluster: "a"}, {Cluster: "b", Type: mcsv1beta1.ClusterSetIP, Ports: []clusterset.Port{http}, Available: clusterset.Availability{http.ID(): 1}},
				},
				Exporters: map[clusterset.ClusterID]reach.Cluster{"a": {}, "b": test.exporter},
			}, []clusterset.ClusterID{"a"})
			check.Equal(t, "paths", test.want, got)
			a.problemsOfGateways(test.importer)
			problem := ""
			for _, p := range a.problems {
				problem += string(p.Severity) + " " + string(p.Reason) + " " + p.Message
			}
			check.Equal(t, "problems", test.problem, problem)
		})
	}
}

func gatewaysOf(reach survey.GatewayReach) survey.MemberObjects {
	return survey.MemberObjects{Gateways: map[clusterset.ClusterID]survey.GatewayReach{"b": reach}}
}
