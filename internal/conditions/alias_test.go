// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/proxy"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: L1
func TestAlias(t *testing.T) {
	t.Parallel()
	gateways := "the endpoints of b, c are left out, because they are reached through gateways: only a Service with a cluster IP can be an alias " +
		"of such an import with a cluster IP, and only a headless one of a headless import"
	families := "the endpoints of b are left out, because they have no addresses in the IP families of the Service: give the Service the families of the import (spec.ipFamilyPolicy)"
	ports := "the import has no port like admin, dns: give the ports of the Service the names and protocols of those of the import"
	const (
		external = "externalTrafficPolicy is Local, and none of the endpoints is on a node of this cluster, so traffic from outside the cluster is dropped: set externalTrafficPolicy to Cluster"
		internal = "internalTrafficPolicy is Local, and none of the endpoints is on a node of this cluster, so traffic to the cluster IP is dropped: set internalTrafficPolicy to Cluster"
	)
	port := func(name string, traffic proxy.Traffic, available, reached int) proxy.Port {
		return proxy.Port{Name: name, Protocol: "TCP", Family: "IPv4", Traffic: traffic, Local: available != reached, Available: available, Reached: reached}
	}
	local := func(p proxy.Port) proxy.Port {
		p.Local = true
		return p
	}
	over6 := func(p proxy.Port) proxy.Port {
		p.Family = "IPv6"
		return p
	}
	http := []string{"http/TCP"}
	fine := port("http", proxy.Internal, 2, 2)
	bc := []clusterset.ClusterID{"b", "c"}
	for name, tc := range map[string]struct {
		aliased conditions.Aliased
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"headless": {
			conditions.Aliased{Ports: []proxy.Port{{Family: "IPv4", Traffic: proxy.Internal, Available: 1, Reached: 1}}},
			"True", conditions.ReasonAliased, "the Service has the endpoints of ServiceImport web",
		},
		"headless without endpoints": {
			conditions.Aliased{Ports: []proxy.Port{{Family: "IPv4", Traffic: proxy.Internal}}},
			"False", conditions.ReasonNoEndpoints, "the Service has no endpoints of ServiceImport web; no endpoint of the import is available",
		},
		"all ports": {
			conditions.Aliased{Matched: []string{"http", "https"}, Ports: []proxy.Port{fine, port("https", proxy.Internal, 1, 1)}},
			"True", conditions.ReasonAliased, "the Service has the endpoints of ServiceImport web at the ports http, https",
		},
		"one port without endpoints": {
			conditions.Aliased{Matched: []string{"http", "https"}, Ports: []proxy.Port{fine, port("https", proxy.Internal, 0, 0)}},
			"True", conditions.ReasonNoEndpoints, "the Service has the endpoints of ServiceImport web at the ports http, https; no endpoint of the import is available at https/TCP",
		},
		"one family without endpoints": {
			conditions.Aliased{Matched: http, Ports: []proxy.Port{fine, over6(port("http", proxy.Internal, 0, 0))}},
			"True", conditions.ReasonNoEndpoints, "the Service has the endpoints of ServiceImport web at the ports http/TCP; no endpoint of the import is available at http/TCP over IPv6",
		},
		"some behind gateways": {
			conditions.Aliased{Matched: http, ByGateway: bc, Ports: []proxy.Port{fine}},
			"True", conditions.ReasonEndpointsLeftOut, "the Service has the endpoints of ServiceImport web at the ports http/TCP; " + gateways,
		},
		"all behind gateways": {
			conditions.Aliased{Matched: http, ByGateway: bc, Ports: []proxy.Port{port("http", proxy.Internal, 0, 0)}},
			"False", conditions.ReasonEndpointsLeftOut, "the Service has no endpoints of ServiceImport web; " + gateways,
		},
		"all of another family": {
			conditions.Aliased{Matched: http, OtherFamily: bc[:1], Ports: []proxy.Port{port("http", proxy.Internal, 0, 0)}},
			"False", conditions.ReasonEndpointsLeftOut, "the Service has no endpoints of ServiceImport web; " + families,
		},
		"some ports, some behind gateways": {
			conditions.Aliased{Matched: http, Unmatched: []string{"admin", "dns"}, ByGateway: bc, Ports: []proxy.Port{fine}},
			"True", conditions.ReasonPortsNotMatched,
			"the Service has the endpoints of ServiceImport web at the ports http/TCP; " + ports + "; " + gateways,
		},
		"no port": {
			conditions.Aliased{Unmatched: []string{"admin", "dns"}},
			"False", conditions.ReasonPortsNotMatched, "the Service has no endpoints of ServiceImport web; " + ports,
		},
		"external traffic is dropped": {
			conditions.Aliased{Matched: http, Ports: []proxy.Port{fine, port("http", proxy.External, 2, 0)}},
			"False", conditions.ReasonTrafficPolicyLocal, "the Service has the endpoints of ServiceImport web at the ports http/TCP; " + external,
		},
		"all traffic is dropped, and some ports are not matched": {
			conditions.Aliased{Matched: http, Unmatched: []string{"admin", "dns"}, Ports: []proxy.Port{port("http", proxy.Internal, 2, 0), port("http", proxy.External, 2, 0)}},
			"False", conditions.ReasonTrafficPolicyLocal, "the Service has the endpoints of ServiceImport web at the ports http/TCP; " + internal + "; " + external + "; " + ports,
		},
		"only own nodes": {
			conditions.Aliased{Matched: http, Ports: []proxy.Port{fine, local(port("http", proxy.External, 2, 2))}},
			"True", conditions.ReasonTrafficPolicyLocal, "the Service has the endpoints of ServiceImport web at the ports http/TCP; " +
				"externalTrafficPolicy is Local, so traffic from outside the cluster reaches only the endpoints on the node at which it arrives",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.aliased.Import = "web"
			check.Equal(t, "condition", conditionOf(conditions.TypeAlias, tc.status, tc.reason, tc.message), conditions.Alias(tc.aliased))
		})
	}
}

// spec: L1
func TestAliasNotWritten(t *testing.T) {
	t.Parallel()
	want := conditionOf(conditions.TypeAlias, "False", conditions.ReasonNotWritten, "some EndpointSlices of the alias cannot be written: no room")
	check.Equal(t, "condition", want, conditions.AliasNotWritten(errors.New("no room")))
}
