// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Slices returns the EndpointSlices of an exported service as other clusters may see them, sorted by ID (spec D5, D6).
// FQDN slices are not among them.
func Slices(id clusterset.ClusterID, sources []*discoveryv1.EndpointSlice) []clusterset.Slice {
	result := make([]clusterset.Slice, 0, len(sources))
	for _, source := range sources {
		if source.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		result = append(result, clusterset.Slice{
			Cluster:     id,
			ID:          clusterset.SliceID(source.Name),
			AddressType: source.AddressType,
			Ports:       endpointPorts(source.Ports),
			Endpoints:   endpoints(source.Endpoints),
			Trigger:     trigger(source),
		})
	}
	slices.SortFunc(result, func(a, b clusterset.Slice) int { return cmp.Compare(a.ID, b.ID) })
	return result
}

// HostNames returns the names of the FQDN slices of an exported service, sorted. They have host names and no addresses, so they are not
// exported (spec D5).
func HostNames(sources []*discoveryv1.EndpointSlice) []string {
	var result []string
	for _, source := range sources {
		if source.AddressType == discoveryv1.AddressTypeFQDN {
			result = append(result, source.Name)
		}
	}
	slices.Sort(result)
	return result
}

// InRanges returns the slices without the addresses that the hub would refuse, and an error for each of those. An
// endpoint that loses all its addresses is left out; the others of its slice stay (design decision 4).
func InRanges(sources []clusterset.Slice, ranges clusterset.AddressRanges) ([]clusterset.Slice, []error) {
	var refused []error
	result := make([]clusterset.Slice, 0, len(sources))
	for _, source := range sources {
		kept := make([]clusterset.Endpoint, 0, len(source.Endpoints))
		for _, endpoint := range source.Endpoints {
			var addresses []string
			for _, address := range endpoint.Addresses {
				if err := ranges.Check(address, source.AddressType); err != nil {
					refused = append(refused, err)
					continue
				}
				addresses = append(addresses, address)
			}
			if endpoint.Addresses = addresses; len(addresses) > 0 {
				kept = append(kept, endpoint)
			}
		}
		source.Endpoints = kept
		result = append(result, source)
	}
	return result, refused
}

func endpointPorts(sources []discoveryv1.EndpointPort) []clusterset.EndpointPort {
	result := make([]clusterset.EndpointPort, 0, len(sources))
	for _, source := range sources {
		protocol := valueOf(source.Protocol)
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		result = append(result, clusterset.EndpointPort{
			Name:        valueOf(source.Name),
			Protocol:    protocol,
			Port:        valueOf(source.Port),
			AppProtocol: valueOf(source.AppProtocol),
		})
	}
	return result
}

func endpoints(sources []discoveryv1.Endpoint) []clusterset.Endpoint {
	result := make([]clusterset.Endpoint, 0, len(sources))
	for _, source := range sources {
		result = append(result, clusterset.Endpoint{
			Addresses:   slices.Clone(source.Addresses),
			Hostname:    valueOf(source.Hostname),
			Zone:        zone(source.Zone),
			NodeName:    valueOf(source.NodeName),
			Ready:       clusterset.ConditionOf(source.Conditions.Ready),
			Serving:     clusterset.ConditionOf(source.Conditions.Serving),
			Terminating: clusterset.ConditionOf(source.Conditions.Terminating),
		})
	}
	return result
}

// zone returns an endpoint's zone; empty where it has none, or one that is no label value. An EndpointSlice may have such a one, but
// no other cluster takes it, and no hint can name it.
func zone(source *string) string {
	if len(validation.IsValidLabelValue(valueOf(source))) > 0 {
		return ""
	}
	return valueOf(source)
}

// trigger returns the time that Kubernetes stamped on the slice when it reacted to the change that it reflects.
func trigger(source *discoveryv1.EndpointSlice) time.Time {
	stamp, err := time.Parse(time.RFC3339Nano, source.Annotations[corev1.EndpointsLastChangeTriggerTime])
	if err != nil { // absent, or not Kubernetes' own: it is for measuring only
		return time.Time{}
	}
	return stamp.UTC()
}
