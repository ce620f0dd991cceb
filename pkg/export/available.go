// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"slices"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Available returns the number of available endpoints of each port, at most 2: those that are ready, or those that serve while they
// terminate if none is ready, as kube-proxy decides (W2).
func Available(ports []clusterset.Port, sources []clusterset.Slice) clusterset.Availability {
	result := clusterset.Availability{}
	for _, port := range ports {
		ready, terminating := 0, 0
		for _, source := range sources {
			if !slices.ContainsFunc(source.Ports, func(p clusterset.EndpointPort) bool {
				return p.Name == port.Name && p.Protocol == port.Protocol
			}) {
				continue
			}
			for _, endpoint := range source.Endpoints {
				switch {
				case endpoint.IsReady():
					ready++
				case endpoint.Serving != clusterset.False && endpoint.Terminating == clusterset.True:
					terminating++
				}
			}
		}
		if ready == 0 {
			ready = terminating
		}
		result[port.ID()] = int32(min(ready, clusterset.MaxAvailable))
	}
	return result
}
