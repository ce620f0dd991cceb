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
	"k8s.io/utils/ptr"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Slices returns the EndpointSlices of an exported service in the form in which they are published, sorted by ID (spec D5, D6). It
// leaves out FQDN slices.
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

// InRanges returns the slices without the addresses that the hub would refuse, and an error for each of these. An endpoint without
// any address left is removed; the other endpoints of its slice stay.
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
		protocol := ptr.Deref(source.Protocol, "")
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		result = append(result, clusterset.EndpointPort{
			Name:        ptr.Deref(source.Name, ""),
			Protocol:    protocol,
			Port:        ptr.Deref(source.Port, 0),
			AppProtocol: ptr.Deref(source.AppProtocol, ""),
		})
	}
	return result
}

func endpoints(sources []discoveryv1.Endpoint) []clusterset.Endpoint {
	result := make([]clusterset.Endpoint, 0, len(sources))
	checked, valid := "", "" // the last zone: to check each would be half of the work
	for _, source := range sources {
		if name := ptr.Deref(source.Zone, ""); name != checked {
			checked, valid = name, zone(name)
		}
		result = append(result, clusterset.Endpoint{
			Addresses:   slices.Clone(source.Addresses),
			Hostname:    ptr.Deref(source.Hostname, ""),
			Zone:        valid,
			NodeName:    ptr.Deref(source.NodeName, ""),
			Ready:       clusterset.ConditionOf(source.Conditions.Ready),
			Serving:     clusterset.ConditionOf(source.Conditions.Serving),
			Terminating: clusterset.ConditionOf(source.Conditions.Terminating),
		})
	}
	return result
}

// zone returns an endpoint's zone; empty if it has none, or if it is not a valid label value. EndpointSlices may contain such a
// zone, but importers refuse it, and topology hints cannot contain it.
func zone(name string) string {
	if len(validation.IsValidLabelValue(name)) > 0 {
		return ""
	}
	return name
}

// trigger returns the time of the change that caused Kubernetes to update the slice.
func trigger(source *discoveryv1.EndpointSlice) time.Time {
	stamp, err := time.Parse(time.RFC3339Nano, source.Annotations[corev1.EndpointsLastChangeTriggerTime])
	if err != nil { // absent, or edited by another user; it is used for metrics only
		return time.Time{}
	}
	return stamp.UTC()
}
