// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Slices returns the mirrored EndpointSlices for the exporters' slices, sorted by name (spec D4-D6). It leaves out slices in other
// IP families, and slices without a port of the merged service.
func Slices(m merge.Merged, site Site, sources []clusterset.Slice) []*discoveryv1.EndpointSlice {
	names := slicePortNames(m)
	result := make([]*discoveryv1.EndpointSlice, 0, len(sources))
	for _, source := range usableSources(m, site, sources) {
		ports := slicePorts(source.Ports, m.PortNames[source.Cluster], names)
		isGateway := source.Listen != nil                                                              // its slice records the listening ports, also while none is served
		if len(ports) == 0 && !isGateway && (m.Type != mcsv1beta1.Headless || len(source.Ports) > 0) { // a headless Service may have none
			continue
		}
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: m.Key.Namespace,
				Name:      clusterset.MirroredSliceName(site.DerivedName, source.Cluster, source.ID),
				Labels:    sliceLabels(m, site, source.Cluster),
			},
			AddressType: source.AddressType,
			Ports:       ports,
			Endpoints:   Endpoints(source.Endpoints),
		}
		if isGateway {
			slice.Labels[clusterset.LabelGateway] = "true"
			slice.Annotations = map[string]string{clusterset.AnnotationGatewayPorts: clusterset.FormatListen(source.Listen)}
			if source.Available > 0 {
				slice.Annotations[clusterset.AnnotationAvailable] = strconv.Itoa(source.Available)
			}
		}
		if source.Local && !hasNode(slice) {
			slice.Annotations = map[string]string{clusterset.AnnotationLocal: "true"}
		}
		result = append(result, slice)
	}
	addHints(withoutLeftOut(m, site), result)
	slices.SortFunc(result, func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) })
	return result
}

// IsLocal reports whether a mirrored slice, which may be condensed, has endpoints of the cluster that it is in.
func IsLocal(slice *discoveryv1.EndpointSlice) bool {
	return slice.Annotations[clusterset.AnnotationLocal] != "" || hasNode(slice)
}

func hasNode(slice *discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return e.NodeName != nil })
}

// usableSources returns the slices of the exporters in the IP families of the import.
func usableSources(m merge.Merged, site Site, sources []clusterset.Slice) []clusterset.Slice {
	families := serviceFamilies(m, site)
	var usable []clusterset.Slice
	for _, source := range sources {
		_, exports := m.PortNames[source.Cluster]
		if exports && slices.Contains(families, corev1.IPFamily(source.AddressType)) {
			usable = append(usable, source)
		}
	}
	return usable
}

func sliceLabels(m merge.Merged, site Site, source clusterset.ClusterID) map[string]string {
	labels := map[string]string{
		discoveryv1.LabelServiceName:  site.DerivedName,
		discoveryv1.LabelManagedBy:    clusterset.ManagedBy,
		mcsv1beta1.LabelServiceName:   m.Key.Name,
		mcsv1beta1.LabelSourceCluster: string(source),
	}
	if m.Type == mcsv1beta1.Headless {
		labels[corev1.IsHeadlessService] = ""
	}
	return labels
}

// slicePorts returns the ports of a source slice with their names in the mirrored slice. served maps the source's names to merged names, and
// names maps merged names to those in the mirrored slice (spec R2).
func slicePorts(ports []clusterset.EndpointPort, served map[string]string, names map[string][]string) []discoveryv1.EndpointPort {
	result := make([]discoveryv1.EndpointPort, 0, len(ports))
	for _, port := range ports {
		merged, ok := served[port.Name]
		if !ok {
			continue
		}
		for _, name := range names[merged] {
			result = append(result, discoveryv1.EndpointPort{
				Name:        new(name),
				Protocol:    new(port.Protocol),
				Port:        number(port.Port),
				AppProtocol: optional(port.AppProtocol),
			})
		}
	}
	return result
}

// Endpoints returns the endpoints of a mirrored slice, sorted by address.
func Endpoints(endpoints []clusterset.Endpoint) []discoveryv1.Endpoint {
	result := make([]discoveryv1.Endpoint, 0, len(endpoints))
	for _, endpoint := range endpoints {
		result = append(result, discoveryv1.Endpoint{
			Addresses: endpoint.Addresses,
			Conditions: discoveryv1.EndpointConditions{
				Ready:       endpoint.Ready.Pointer(),
				Serving:     endpoint.Serving.Pointer(),
				Terminating: endpoint.Terminating.Pointer(),
			},
			Hostname: optional(endpoint.Hostname),
			NodeName: optional(endpoint.NodeName),
			Zone:     optional(endpoint.Zone),
		})
	}
	slices.SortStableFunc(result, func(a, b discoveryv1.Endpoint) int { return slices.Compare(a.Addresses, b.Addresses) })
	return result
}

// addHints adds topology hints if the service prefers the same zone, for each IP family in which every ready endpoint that serves a port
// has a zone: kube-proxy ignores all hints if one endpoint has none (spec D6).
func addHints(m merge.Merged, mirrored []*discoveryv1.EndpointSlice) {
	if m.Type == mcsv1beta1.Headless || !prefersZone(m.TrafficDistribution) {
		return
	}
	zoneless := zonelessFamilies(mirrored)
	for _, slice := range mirrored {
		for i, endpoint := range slice.Endpoints {
			if endpoint.Zone != nil && !zoneless[slice.AddressType] {
				slice.Endpoints[i].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: *endpoint.Zone}}}
			}
		}
	}
}

// zonelessFamilies returns the IP families in which a ready endpoint that serves a port has no zone.
func zonelessFamilies(mirrored []*discoveryv1.EndpointSlice) map[discoveryv1.AddressType]bool {
	result := map[discoveryv1.AddressType]bool{}
	for _, slice := range mirrored {
		if len(slice.Ports) > 0 && hasReadyWithoutZone(slice) { // a slice of gateways that does not serve has no ports
			result[slice.AddressType] = true
		}
	}
	return result
}

// WithoutZone returns whose ready endpoints in the mirrored slices have no zone, although the service prefers the same zone, sorted: the IDs
// of the clusters, and "gateways of this cluster" (spec D6). kept are mirrored slices, which may be condensed.
func WithoutZone(m merge.Merged, site Site, sources []clusterset.Slice, kept []*discoveryv1.EndpointSlice) []string {
	m = withoutLeftOut(m, site)
	if m.Type == mcsv1beta1.Headless || !prefersZone(m.TrafficDistribution) {
		return nil
	}
	return zonelessSources(slices.Concat(Slices(m, site, sources), kept))
}

// zonelessSources returns whose ready endpoints have no zone, sorted.
func zonelessSources(mirrored []*discoveryv1.EndpointSlice) []string {
	var result []string
	for _, slice := range mirrored {
		switch {
		case len(slice.Ports) == 0 || !hasReadyWithoutZone(slice): // a slice of gateways that does not serve has no ports
		case slice.Labels[clusterset.LabelGateway] != "":
			result = append(result, "gateways of this cluster")
		default:
			result = append(result, slice.Labels[mcsv1beta1.LabelSourceCluster])
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}

func hasReadyWithoutZone(slice *discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool {
		return clusterset.ConditionOf(e.Conditions.Ready) != clusterset.False && e.Zone == nil
	})
}

// prefersZone reports whether a trafficDistribution prefers endpoints in the same zone. PreferSameNode has no meaning across
// clusters, so it is treated as the same zone.
func prefersZone(distribution string) bool {
	switch distribution {
	case corev1.ServiceTrafficDistributionPreferClose,
		corev1.ServiceTrafficDistributionPreferSameZone,
		corev1.ServiceTrafficDistributionPreferSameNode:
		return true
	}
	return false
}

func number(port int32) *int32 {
	if port == 0 {
		return nil
	}
	return &port
}
