// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package merge makes one service of the exports of several clusters, and says where they disagree (KEP-1645,
// "Constraints and Conflict Resolution"). It is pure: the same set of exports gives the same result in every cluster
// and in any order (spec R7), which is why no central controller is needed to report conflicts.
package merge

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Merged is the one service that a set of exports forms.
type Merged struct {
	Key clusterset.ServiceKey
	// Clusters are the exporters, sorted.
	Clusters []clusterset.ClusterID
	// Oldest is the exporter whose word counts where they disagree.
	Oldest clusterset.ClusterID

	Type mcsv1beta1.ServiceImportType
	// Ports are the union of the exporters' ports; those of older exports come first. No two have the same name, nor
	// the same protocol and number (spec R1).
	Ports []clusterset.Port
	// IPFamilies are the union of the exporters' families, in the order of the oldest that has each.
	IPFamilies            []corev1.IPFamily
	Affinity              clusterset.Affinity
	InternalTrafficPolicy corev1.ServiceInternalTrafficPolicy
	TrafficDistribution   string
	Labels, Annotations   map[string]string
	// Selection is the oldest's; nil where it shares none, and for headless services (spec D8).
	Selection *clusterset.Selection

	// PortNames holds, for each cluster, the merged name of each port that it serves, by the name the port has there.
	// A port that lost a conflict is absent: its cluster's endpoints must not receive that port's traffic (spec R2).
	PortNames map[clusterset.ClusterID]map[string]string

	// Conflicts are where the exporters disagree, in the order of the API's list of reasons.
	Conflicts []Conflict
}

// Merge returns the service that these exports of one service key form, and false where there are none. Each cluster
// has at most one export among them. The oldest export wins, among equally old ones that of the smaller cluster ID
// (spec R3, R4). The exports are not changed, but the result shares their maps and slices.
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

// unionOfPorts merges ports by name, then by protocol and number (spec R1): of two ports with one name, and of two
// with one protocol and number, the older export's is kept.
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

// portNames returns which merged ports each cluster serves: those whose protocol and number its Service has, under
// whatever name (spec R2).
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
