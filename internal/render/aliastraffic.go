// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// adapt changes the endpoints of an alias' slices from those of the mirrored slices: their hints are those for the trafficDistribution of
// the alias, which kube-proxy reads, and gateways are in proportion to the pods of the alias.
func (a *AliasEndpoints) adapt(
	alias *corev1.Service, serviceImport *mcsv1beta1.ServiceImport, own clusterset.ClusterID, mirrored, pods []*discoveryv1.EndpointSlice,
) {
	sources := map[string]*discoveryv1.EndpointSlice{}
	for _, slice := range mirrored {
		sources[clusterset.AliasSliceName(alias.Name, slice.Name)] = slice
	}
	prefers := !isHeadless(alias) && prefersZone(ptr.Deref(alias.Spec.TrafficDistribution, ""))
	zoneless := zonelessFamilies(a.Slices)
	for _, slice := range a.Slices {
		source := sources[slice.Name]
		most := limitOf(source, slice, pods)
		hints := prefers && !zoneless[slice.AddressType]
		switch isSame := most < 0 && hints == hasHints(slice); {
		case isSame:
		case plan.IsCondensed(slice.Endpoints):
			a.Unread = append(a.Unread, source.Name)
		default:
			if most >= 0 {
				slice.Endpoints = firstGateways(slice.Endpoints, keyOf(serviceImport), clusterset.ClusterID(source.Labels[mcsv1beta1.LabelSourceCluster]), most)
			}
			slice.Endpoints = withHints(slice.Endpoints, hints)
		}
	}
	if prefers {
		a.WithoutZone = zonelessSources(slices.Concat(labelled(a.Slices, sources), labelled(a.Own, sources), podsOf(own, pods)))
	}
}

func keyOf(serviceImport *mcsv1beta1.ServiceImport) clusterset.ServiceKey {
	return clusterset.ServiceKey{Namespace: serviceImport.Namespace, Name: serviceImport.Name}
}

// limitOf returns how many gateways an alias' slice may list: the number of available endpoints of the source if pods of the alias serve one
// of its ports too; a negative number if there is no limit.
func limitOf(source, slice *discoveryv1.EndpointSlice, pods []*discoveryv1.EndpointSlice) int {
	available, err := strconv.Atoi(source.Annotations[clusterset.AnnotationAvailable])
	if source.Labels[clusterset.LabelGateway] == "" || err != nil || available <= 0 {
		return -1
	}
	serves := func(other *discoveryv1.EndpointSlice) bool {
		isReady := slices.ContainsFunc(other.Endpoints, func(e discoveryv1.Endpoint) bool {
			return clusterset.ConditionOf(e.Conditions.Ready) != clusterset.False
		})
		return isReady && other.AddressType == slice.AddressType && slices.ContainsFunc(other.Ports, func(p discoveryv1.EndpointPort) bool {
			return slices.ContainsFunc(slice.Ports, func(q discoveryv1.EndpointPort) bool { return ptr.Deref(p.Name, "") == ptr.Deref(q.Name, "") })
		})
	}
	if !slices.ContainsFunc(pods, serves) {
		return -1
	}
	return available
}

// firstGateways returns the gateways that a slice with at most n of them lists, in their order.
func firstGateways(gateways []discoveryv1.Endpoint, key clusterset.ServiceKey, source clusterset.ClusterID, n int) []discoveryv1.Endpoint {
	chosen := slices.SortedFunc(slices.Values(gateways), func(a, b discoveryv1.Endpoint) int {
		return reach.CompareGateways(key, source, a.Addresses[0], b.Addresses[0])
	})
	chosen = chosen[:min(n, len(chosen))]
	slices.SortFunc(chosen, func(a, b discoveryv1.Endpoint) int { return slices.Compare(a.Addresses, b.Addresses) })
	return chosen
}

func hasHints(slice *discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Hints != nil })
}

// withHints returns copies of endpoints with hints for their zones, or without hints.
func withHints(endpoints []discoveryv1.Endpoint, hints bool) []discoveryv1.Endpoint { //nolint:revive // the zones of endpoints decide, not a mode
	result := slices.Clone(endpoints)
	for i, endpoint := range result {
		result[i].Hints = nil
		if hints && endpoint.Zone != nil {
			result[i].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: *endpoint.Zone}}}
		}
	}
	return result
}

// labelled returns an alias' slices with the labels of the mirrored slices.
func labelled(all []*discoveryv1.EndpointSlice, sources map[string]*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
	result := make([]*discoveryv1.EndpointSlice, 0, len(all))
	for _, slice := range all {
		copied := *slice
		copied.Labels = sources[slice.Name].Labels
		result = append(result, &copied)
	}
	return result
}

// podsOf returns the slices of the alias' own pods as those of the local cluster.
func podsOf(own clusterset.ClusterID, pods []*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
	result := make([]*discoveryv1.EndpointSlice, 0, len(pods))
	for _, slice := range pods {
		copied := *slice
		copied.Labels = map[string]string{mcsv1beta1.LabelSourceCluster: string(own)}
		result = append(result, &copied)
	}
	return result
}
