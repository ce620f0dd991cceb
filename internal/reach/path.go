// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"cmp"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Path is how a cluster reaches the endpoints of an exporter (W1).
type Path string

// The paths.
const (
	// Direct: to the addresses of the endpoints.
	Direct Path = "direct"
	// Gateway: through a gateway of this cluster and one of the exporter.
	Gateway Path = "gateway"
	// None: the cluster cannot reach them.
	None Path = "none"
)

// Cluster contains what the path depends on, of one cluster.
type Cluster struct {
	// Network is empty for the default network.
	Network string
	// Publish is empty for PublishAddresses.
	Publish hubv1alpha1.Publish
	// Gateway is set if the cluster has a gateway.
	Gateway bool
}

// IsDirect reports whether the local cluster uses the addresses of a source's endpoints: both are in one network, and the source
// publishes addresses.
func IsDirect(local, source Cluster) bool {
	return local.Network == source.Network && source.Publish != hubv1alpha1.PublishAvailability
}

// ChoosePath returns the path from the local cluster to the endpoints of an export of source, and the reason and what to do if it is None
// (W4).
func ChoosePath(local, source Cluster, export clusterset.Export) (Path, error) {
	if IsDirect(local, source) {
		return Direct, nil
	}
	if err := obstacle(local, source, export); err != nil {
		return None, fmt.Errorf("cluster %s %s, and %w", export.Cluster, difference(local, source), err)
	}
	return Gateway, nil
}

// difference returns why the path to a source is not direct.
func difference(local, source Cluster) string {
	if local.Network == source.Network {
		return "publishes no addresses"
	}
	return fmt.Sprintf("is in network %s, this cluster in network %s",
		cmp.Or(source.Network, hubv1alpha1.DefaultNetwork), cmp.Or(local.Network, hubv1alpha1.DefaultNetwork))
}

// withoutGateways returns what an administrator of the hub can do so that the path to a source is direct.
func withoutGateways(local, source Cluster) string {
	if local.Network == source.Network {
		return "set publish in its Member to Addresses"
	}
	return "if the pods of both reach each other, set one network in both Members"
}

// obstacle returns why gateways cannot be used, and what to do; nil if they can.
func obstacle(local, source Cluster, export clusterset.Export) error {
	switch {
	case !local.Gateway:
		return fmt.Errorf("this cluster has no gateway: %s", withoutGateways(local, source))
	case !source.Gateway:
		return fmt.Errorf("it publishes no gateway: %s", withoutGateways(local, source))
	case export.Available == nil:
		return errors.New("its record has no availability: wait until its agent has published it again, or upgrade that agent")
	case export.Type == mcsv1beta1.Headless && export.Hostnames == nil:
		return errors.New("its record has no hostnames: wait until its agent has published it again, or upgrade that agent and the hub's CRDs")
	case len(Ports(export)) == 0:
		return errors.New("the service has no TCP port, and gateways support no other: export a TCP port")
	}
	return nil
}

// Ports returns the ports of an export that gateways support, in their order: those with protocol TCP (G10).
func Ports(export clusterset.Export) []clusterset.Port {
	var result []clusterset.Port
	for _, port := range export.Ports {
		if port.Protocol == corev1.ProtocolTCP {
			result = append(result, port)
		}
	}
	return result
}
