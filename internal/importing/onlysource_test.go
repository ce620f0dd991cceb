// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// A source behind gateways has two gateways if no other source serves its ports, whatever the reason is.
//
// spec: G2, P1
func TestGatewaysOfTheOnlySource(t *testing.T) {
	t.Parallel()
	one, two := []string{"10.9.0.1"}, []string{"10.9.0.1", "10.9.0.2"}
	for name, test := range map[string]struct {
		change  func(*view)
		sources []policyv1alpha1.Source
		want    []string
	}{
		"beside another":                   {func(*view) {}, nil, one},
		"the other is at its level":        {func(*view) {}, []policyv1alpha1.Source{{Any: true}}, one},
		"alone at its level":               {func(*view) {}, []policyv1alpha1.Source{clusters("b"), {Any: true}}, two},
		"not at the level that serves":     {func(*view) {}, []policyv1alpha1.Source{clusters("a"), {Any: true}}, one},
		"the other has no ready endpoint":  {func(v *view) { v.Sources.Hub.Slices[0].Endpoints[0].Ready = clusterset.False }, nil, two},
		"the other serves another port":    {func(v *view) { v.Sources.Hub.Slices[0].Ports[0].Name = "other" }, nil, two},
		"the only exporter":                {func(v *view) { v.Sources.Hub.Exports, v.Sources.Hub.Slices = v.Sources.Hub.Exports[1:], nil }, nil, two},
		"no endpoint of its own available": {func(v *view) { v.Sources.Hub.Exports[1].Available = clusterset.Availability{http.ID(): 0} }, nil, nil},
		"its endpoints terminate": {func(v *view) { // and those of the other are not ready
			v.Sources.Hub.Slices[0].Endpoints[0].Ready = clusterset.False
			v.Sources.Hub.Exports[1].Terminating = map[clusterset.PortID]bool{http.ID(): true}
		}, nil, two},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := behindGateway()
			gateways := v.Sources.Gateways.Slices
			gateways[0].Endpoints = append(gateways[0].Endpoints, clusterset.Endpoint{Addresses: []string{"10.9.0.2"}})
			test.change(&v)
			v.chooseGateways()
			v.Routing = prefer(v, test.sources...)
			var got []string
			for _, s := range decide(v).slices {
				for _, e := range s.Endpoints {
					if s.Cluster == "b" {
						got = append(got, e.Addresses...)
						if terminates := name == "its endpoints terminate"; e.IsReady() == terminates {
							t.Errorf("gateway %+v", e)
						}
					}
				}
			}
			check.Equal(t, "gateways", test.want, got)
		})
	}
}
