// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package merge computes one service from the exports of several clusters, and their conflicts (KEP-1645, "Constraints and Conflict
// Resolution"). It is pure: the same exports give the same result in every cluster and in any order (spec R7), so that no central
// controller is needed to report conflicts.
package merge

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Merged is the service that is computed from a set of exports.
type Merged struct {
	Key clusterset.ServiceKey
	// Clusters are the exporters, sorted.
	Clusters []clusterset.ClusterID
	// Oldest is the exporter whose values are used if exports differ.
	Oldest clusterset.ClusterID

	Type mcsv1beta1.ServiceImportType
	// Ports are the union of the exporters' ports, those of older exports first. Names are unique, and so are pairs of protocol and
	// number (spec R1).
	Ports []clusterset.Port
	// IPFamilies are the union of the exporters' families, those of older exports first.
	IPFamilies            []corev1.IPFamily
	Affinity              clusterset.Affinity
	InternalTrafficPolicy corev1.ServiceInternalTrafficPolicy
	TrafficDistribution   string
	Labels, Annotations   map[string]string
	// Selection is that of the oldest export; nil if it has none, and for headless services (spec D8).
	Selection *clusterset.Selection

	// PortNames contains, for each cluster, the merged names of the ports that it serves, by their names in that cluster. A port
	// that lost a conflict is not included: endpoints of its cluster must not receive traffic for the merged port (spec R2).
	PortNames map[clusterset.ClusterID]map[string]string

	// Conflicts are the fields in which exports differ, in the order of the reasons in the API.
	Conflicts []Conflict
}

// Merge returns the service that is computed from the exports of one service key, and false if there are none. Each cluster has at
// most one export. The oldest export wins; if two have the same age, that of the smaller cluster ID wins (spec R3, R4). The exports
// are not changed, but the result shares their maps and slices.
func Merge(exports []clusterset.Export) (Merged, bool) {
	if len(exports) == 0 {
		return Merged{}, false
	}
	byAge := slices.SortedFunc(slices.Values(exports), Older)
	oldest := byAge[0]
	merged := Merged{
		Key:                   oldest.Key,
		Oldest:                oldest.Cluster,
		Type:                  oldest.Type,
		IPFamilies:            unionOfFamilies(byAge),
		Affinity:              oldest.Affinity,
		InternalTrafficPolicy: oldest.InternalTrafficPolicy,
		TrafficDistribution:   oldest.TrafficDistribution,
		Labels:                oldest.Labels,
		Annotations:           oldest.Annotations,
	}
	if oldest.Type == mcsv1beta1.ClusterSetIP {
		merged.Selection = oldest.Selection
	}
	for _, export := range byAge {
		merged.Clusters = append(merged.Clusters, export.Cluster)
	}
	slices.Sort(merged.Clusters)
	merged.Ports = unionOfPorts(byAge)
	merged.PortNames = portNames(exports, merged.Ports)
	merged.Conflicts = conflicts(oldest, byAge[1:], merged)
	return merged, true
}

// Older orders exports by effective age, then by cluster ID.
func Older(a, b clusterset.Export) int {
	return cmp.Or(a.Age.Compare(b.Age), cmp.Compare(a.Cluster, b.Cluster))
}

// unionOfPorts merges ports by name, then by protocol and number (spec R1). If two ports have the same name, or the same protocol
// and number, that of the older export is kept.
func unionOfPorts(byAge []clusterset.Export) []clusterset.Port {
	var union []clusterset.Port
	names, ids := map[string]bool{}, map[clusterset.PortID]bool{}
	for _, export := range byAge {
		for _, port := range export.Ports {
			if names[port.Name] || ids[port.ID()] {
				continue
			}
			names[port.Name], ids[port.ID()] = true, true
			union = append(union, port)
		}
	}
	return union
}

// portNames returns the merged ports that each cluster serves. A cluster serves a port if its Service has the protocol and number,
// under any name (spec R2).
func portNames(exports []clusterset.Export, union []clusterset.Port) map[clusterset.ClusterID]map[string]string {
	nameOf := make(map[clusterset.PortID]string, len(union))
	for _, port := range union {
		nameOf[port.ID()] = port.Name
	}
	names := make(map[clusterset.ClusterID]map[string]string, len(exports))
	for _, export := range exports {
		served := make(map[string]string, len(export.Ports))
		for _, port := range export.Ports {
			if name, ok := nameOf[port.ID()]; ok {
				served[port.Name] = name
			}
		}
		names[export.Cluster] = served
	}
	return names
}

func unionOfFamilies(byAge []clusterset.Export) []corev1.IPFamily {
	var union []corev1.IPFamily
	for _, export := range byAge {
		for _, family := range export.IPFamilies {
			if !slices.Contains(union, family) {
				union = append(union, family)
			}
		}
	}
	return union
}
