// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"strings"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// ZonesMissing returns the sentence about a trafficDistribution without effect, because some ready endpoints have no zone (spec D6); empty if
// there are none. without says of which clusters they are, or that they are gateways.
func ZonesMissing(distribution string, without []string) string {
	if len(without) == 0 {
		return ""
	}
	return fmt.Sprintf("trafficDistribution %s has no effect, because ready endpoints have no zone: %s. kube-proxy uses zones only if all ready endpoints have one. "+
		"Give their nodes the label topology.kubernetes.io/zone.", distribution, strings.Join(firstTen(without), ", "))
}

// LocalTraffic returns which endpoints of an import with internalTrafficPolicy Local do not get the traffic of all nodes: those of other
// clusters, and those of clusters that are reached through gateways.
func LocalTraffic(elsewhere, gateways []clusterset.ClusterID) []error {
	var result []error
	if len(elsewhere) > 0 {
		result = append(result, fmt.Errorf("internalTrafficPolicy is Local, so the endpoints of %s get no traffic: they are on no node of this cluster", listClusters(elsewhere)))
	}
	if len(gateways) > 0 {
		result = append(result, fmt.Errorf("internalTrafficPolicy is Local, so the endpoints of %s get traffic only from the nodes on which gateways run", listClusters(gateways)))
	}
	return result
}
