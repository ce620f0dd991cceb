// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"

	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/internal/preference"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Routing is what decides which of the sources of an import serve.
type Routing struct {
	// Policy describes where the sources are from.
	Policy string
	// Sources are the preferred ones; empty if all sources of the import serve.
	Sources  []policyv1alpha1.Source
	Clusters preference.Clusters
	// Unmatched is what the sources name and no member has.
	Unmatched []string
	// Available says for how long better levels have been available.
	Available map[preference.Return]time.Duration
}

// Serving returns the clusters whose mirrored slices have ports.
func Serving(mirrored []*discoveryv1.EndpointSlice) map[clusterset.ClusterID]bool {
	serving := map[clusterset.ClusterID]bool{}
	for _, slice := range mirrored {
		if len(slice.Ports) > 0 {
			serving[SourceOf(slice)] = true
		}
	}
	return serving
}

// applies reports whether the policy applies to an import: not to a headless one, whose endpoints have names of their own, and not if
// the derived Service has a selector, because Kubernetes then creates the slices for the local pods.
func (r Routing) applies(m merge.Merged) bool {
	return len(r.Sources) > 0 && m.Type != mcsv1beta1.Headless && m.Selection == nil
}

// allowed returns the sources without the ports of those that the policy does not match, so that no other source is left out because
// of them.
func (r Routing) allowed(m merge.Merged, sources []liveness.Source) []liveness.Source {
	if !r.applies(m) {
		return sources
	}
	result := make([]liveness.Source, len(sources))
	for i, source := range sources {
		if _, ok := r.Clusters.Level(r.Sources, source.Cluster); !ok {
			source.Ports = nil
		}
		result[i] = source
	}
	return result
}

// choose returns which level of the policy serves each port, from what liveness leaves.
func (r Routing) choose(v view, d decision) preference.Choice {
	var offers []preference.Offer
	families := render.Families(d.merged, d.site) // gateways have all those of this cluster
	for _, slice := range d.slices {
		if !slices.Contains(families, corev1.IPFamily(slice.AddressType)) {
			continue
		}
		if level, ok := r.Clusters.Level(r.Sources, slice.Cluster); ok {
			availability := preference.AvailabilityOf(slice.Endpoints)
			for _, port := range slice.Ports {
				if name, ok := d.merged.PortNames[slice.Cluster][port.Name]; ok {
					offers = append(offers, preference.Offer{Port: preference.Port{Name: name, Family: slice.AddressType}, Level: level, Availability: availability})
				}
			}
		}
	}
	for _, slice := range d.kept {
		availability := preference.AvailabilityOfMirrored(slice.Endpoints)
		for port, level := range r.servedBy(d.merged, slice) {
			offers = append(offers, preference.Offer{Port: port, Level: level, Availability: availability})
		}
	}
	inUse := map[preference.Port]int{}
	for _, slice := range v.Mirrored {
		for port, level := range r.servedBy(d.merged, slice) {
			if used, ok := inUse[port]; !ok || level < used {
				inUse[port] = level
			}
		}
	}
	return preference.Choose(offers, inUse, r.Available)
}

// servedBy returns the ports of a mirrored slice, without withheld ones, and its level for each; nothing if the policy does not match
// its cluster.
func (r Routing) servedBy(m merge.Merged, slice *discoveryv1.EndpointSlice) map[preference.Port]int {
	level, ok := r.Clusters.Level(r.Sources, SourceOf(slice))
	if !ok {
		return nil
	}
	result := map[preference.Port]int{}
	for _, name := range mergedPorts(m, slice.Ports) {
		result[preference.Port{Name: name, Family: slice.AddressType}] = level
	}
	return result
}

// restrict returns the slices of a decision with only the ports that their levels serve. Slices without a port are left out, except
// those of gateways, which record the listening ports, and kept ones, which store the withheld ports.
func (r Routing) restrict(d decision) (used []clusterset.Slice, kept []*discoveryv1.EndpointSlice) {
	for _, slice := range d.slices {
		level, ok := r.Clusters.Level(r.Sources, slice.Cluster)
		restricted := preference.WithPorts(slice, d.merged.PortNames[slice.Cluster], func(name string) bool {
			return ok && d.choice.Serves(preference.Port{Name: name, Family: slice.AddressType}, level)
		})
		if len(restricted.Ports) > 0 || restricted.Listen != nil {
			used = append(used, restricted)
		}
	}
	for _, slice := range d.kept {
		var names []string
		for port, level := range r.servedBy(d.merged, slice) {
			if d.choice.Serves(port, level) {
				names = append(names, port.Name)
			}
		}
		kept = append(kept, render.Withhold(slice, render.SliceNames(d.merged, names)))
	}
	return used, kept
}

// condition returns the condition of an import that says which of the policy's sources serve.
func (r Routing) condition(d decision) metav1.Condition {
	serving := map[int][]clusterset.ClusterID{}
	add := func(id clusterset.ClusterID) {
		if level, ok := r.Clusters.Level(r.Sources, id); ok {
			serving[level] = append(serving[level], id)
		}
	}
	for _, slice := range d.slices {
		if len(slice.Ports) > 0 && preference.AvailabilityOf(slice.Endpoints) > preference.Unavailable {
			add(slice.Cluster)
		}
	}
	for _, slice := range d.kept {
		if len(slice.Ports) > 0 && preference.AvailabilityOfMirrored(slice.Endpoints) > preference.Unavailable {
			add(SourceOf(slice))
		}
	}
	return conditions.Preferred(r.Policy, d.choice, serving, r.Unmatched)
}
