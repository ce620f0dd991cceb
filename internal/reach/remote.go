// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Remote returns the desired RemoteGateways in a namespace, sorted by name: those of the usable records, and the existing ones that are
// not revoked, because what the hub lacks may be lost. The gateways refuse addresses in refusedRanges, and find backends in the own ranges.
// If those are not known, existing objects keep theirs. properties are those of the known members.
func Remote(
	namespace string, usable map[clusterset.ClusterID]*hubv1alpha1.PublishedGateway, refusedRanges []string, own clusterset.OwnRanges,
	properties map[clusterset.ClusterID]map[string]string, existing []*gatewayv1alpha1.RemoteGateway, revoked func(clusterset.ClusterID) bool,
) []*gatewayv1alpha1.RemoteGateway {
	desired := map[clusterset.ClusterID]*gatewayv1alpha1.RemoteGateway{}
	for _, remote := range existing {
		if id := clusterset.ClusterID(remote.Name); !revoked(id) {
			desired[id] = remote
		}
	}
	for id, published := range usable {
		remote := remoteGateway(namespace, id, published.Spec)
		remote.Spec.RefusedRanges = refusedRanges
		if before := desired[id]; before != nil {
			remote.Spec.OwnRanges = before.Spec.OwnRanges
		}
		desired[id] = remote
	}
	for id, remote := range desired {
		remote = remote.DeepCopy() // it may be an existing one
		if own.Pods != nil {
			remote.Spec.OwnRanges = ownRanges(own)
		}
		if known, ok := properties[id]; ok {
			remote.Spec.Properties = map[string]gatewayv1alpha1.PropertyValue{}
			for name, value := range known {
				remote.Spec.Properties[name] = gatewayv1alpha1.PropertyValue(value)
			}
		}
		desired[id] = remote
	}
	var result []*gatewayv1alpha1.RemoteGateway
	for _, id := range slices.Sorted(maps.Keys(desired)) {
		result = append(result, desired[id])
	}
	return result
}

func ownRanges(own clusterset.OwnRanges) *gatewayv1alpha1.OwnRanges {
	return &gatewayv1alpha1.OwnRanges{Pods: clusterset.CIDRs(own.Pods), Nodes: clusterset.CIDRs(own.Nodes), Services: clusterset.CIDRs(own.Services)}
}

func remoteGateway(namespace string, id clusterset.ClusterID, published hubv1alpha1.PublishedGatewaySpec) *gatewayv1alpha1.RemoteGateway {
	result := &gatewayv1alpha1.RemoteGateway{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: string(id), Labels: map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy},
		},
		Spec: gatewayv1alpha1.RemoteGatewaySpec{Cluster: string(id), Bundle: published.Bundle, Versions: published.Versions},
	}
	for _, address := range published.Addresses {
		result.Spec.Addresses = append(result.Spec.Addresses, gatewayv1alpha1.Address(address))
	}
	return result
}
