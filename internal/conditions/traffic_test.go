// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/proxy"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: D6, C6
func TestTrafficMessages(t *testing.T) {
	t.Parallel()
	check.Equal(t, "zones", "", conditions.ZonesMissing("PreferClose", nil))
	zones := conditions.ZonesMissing("PreferClose", []string{"b", "gateways of this cluster"})
	check.Equal(t, "zones", "trafficDistribution PreferClose has no effect, because ready endpoints have no zone: b, gateways of this cluster. "+
		"kube-proxy uses zones only if all ready endpoints have one. Give their nodes the label topology.kubernetes.io/zone.", zones)
	check.Equal(t, "Ready", "The service is imported. "+zones, conditions.ImportReady(nil, nil, "", zones).Message)
	check.Equal(t, "no policy", []string(nil), check.Messages(conditions.LocalTraffic(nil, nil)))
	check.Equal(t, "policy", []string{
		"internalTrafficPolicy is Local, so the endpoints of a, b get no traffic: they are on no node of this cluster",
		"internalTrafficPolicy is Local, so the endpoints of c get traffic only from the nodes on which gateways run",
	}, check.Messages(conditions.LocalTraffic([]clusterset.ClusterID{"b", "a"}, []clusterset.ClusterID{"c"})))
	served := []proxy.Port{{Name: "http", Protocol: "TCP", Family: "IPv4", Traffic: proxy.Internal, Available: 1, Reached: 1}}
	aliased := conditions.Alias(conditions.Aliased{Import: "web", Ports: served, ZonesMissing: zones})
	check.Equal(t, "alias", conditionOf(conditions.TypeAlias, "True", conditions.ReasonZonesMissing,
		"the Service has the endpoints of ServiceImport web; "+strings.TrimSuffix(zones, ".")), aliased)
}
