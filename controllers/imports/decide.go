// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
	"github.com/tombolo-mcs/tombolo/pkg/merge"
	"github.com/tombolo-mcs/tombolo/pkg/render"
)

// decision says what this cluster should hold of one service.
type decision struct {
	// exported is false where nobody exports the service any more.
	exported bool
	merged   merge.Merged
	site     render.Site
	// slices are the sources whose endpoints are used.
	slices []clusterset.Slice
	// kept are the names of mirrored slices of which nothing is known at present: they stay as they are.
	kept map[string]bool
}

// decide is the one place that says which exports form the import and whose endpoints it uses. It is pure.
func decide(v view) decision {
	exports := v.known.Exports()
	d := decision{kept: kept(v)}
	held := held(v, exports)
	if len(held) > 0 && v.serviceImport != nil && clusterset.IsManaged(v.serviceImport.Labels) {
		exports = append(exports, established(v.serviceImport, v.selection))
	}
	if d.merged, d.exported = merge.Merge(exports); !d.exported {
		return d
	}
	d.merged.Clusters = constituents(d.merged.Clusters, v.serviceImport, held)
	d.site = site(v, d.merged)
	d.slices = liveness.Serving(d.merged, v.policies, candidates(v, d.merged))
	return d
}

// candidates returns the slices of all exporters, each with what is known of its cluster's life. The own ones are not
// among them where the derived Service has a selector: Kubernetes finds the pods, and none must be there twice (spec D8).
func candidates(v view, merged merge.Merged) []liveness.Source {
	mirrored := map[sliceKey]bool{}
	for _, slice := range v.mirrored {
		mirrored[keyOf(slice)] = true
	}
	var result []liveness.Source
	for _, slice := range v.known.Hub.Slices {
		result = append(result, liveness.Source{
			Slice: slice, State: v.states[slice.Cluster], Mirrored: mirrored[sliceKey{slice.Cluster, slice.ID}],
		})
	}
	if merged.Selection != nil {
		return result
	}
	for _, slice := range v.ownSlices {
		result = append(result, liveness.Source{Slice: slice, State: liveness.Live})
	}
	return result
}

// sliceKey names a source slice of one service.
type sliceKey struct {
	cluster clusterset.ClusterID
	id      string
}

// keyOf returns the source slice that a mirrored slice stands for.
func keyOf(mirrored *discoveryv1.EndpointSlice) sliceKey {
	cluster := sourceOf(mirrored)
	prefix := clusterset.MirroredSliceName(mirrored.Labels[discoveryv1.LabelServiceName], cluster, "")
	return sliceKey{cluster, strings.TrimPrefix(mirrored.Name, prefix)}
}

// kept returns the mirrored slices whose source slice is not known, of clusters of which not enough is known to
// believe that it is gone: it was not seen to be deleted either.
func kept(v view) map[string]bool {
	present := map[sliceKey]bool{}
	for _, slice := range v.known.Hub.Slices {
		present[sliceKey{slice.Cluster, slice.ID}] = true
	}
	result := map[string]bool{}
	for _, slice := range v.mirrored {
		if source := keyOf(slice); v.knowledge[source.cluster] == hub.Unknown && !present[source] && !v.withdrawn[source] {
			result[slice.Name] = true
		}
	}
	return result
}

// held returns the clusters that the import or its slices name, that export nothing as far as is known, and of which
// not enough is known to believe it (design decision 7).
func held(v view, exports []clusterset.Export) map[clusterset.ClusterID]bool {
	result := map[clusterset.ClusterID]bool{}
	for id, knowledge := range v.knowledge {
		exporting := slices.ContainsFunc(exports, func(e clusterset.Export) bool { return e.Cluster == id })
		if knowledge == hub.Unknown && !exporting {
			result[id] = true
		}
	}
	return result
}

// established returns the import as it stands as if it were the oldest export, so that what held clusters agreed on
// stays in force until they are heard of again. It belongs to no cluster.
func established(serviceImport *mcsv1beta1.ServiceImport, selection *clusterset.Selection) clusterset.Export {
	spec := serviceImport.Spec
	export := clusterset.Export{
		Key:         clusterset.ServiceKey{Namespace: serviceImport.Namespace, Name: serviceImport.Name},
		Type:        spec.Type,
		IPFamilies:  spec.IPFamilies,
		Affinity:    clusterset.Affinity{Mode: spec.SessionAffinity},
		Labels:      without(serviceImport.Labels, clusterset.LabelManagedBy),
		Annotations: without(serviceImport.Annotations, clusterset.AnnotationDerivedService),
		Selection:   selection,
	}
	for _, port := range spec.Ports {
		export.Ports = append(export.Ports, clusterset.Port{
			Name: port.Name, Protocol: port.Protocol, Port: port.Port, AppProtocol: valueOf(port.AppProtocol),
		})
	}
	if config := spec.SessionAffinityConfig; config != nil && config.ClientIP != nil {
		export.Affinity.TimeoutSeconds = valueOf(config.ClientIP.TimeoutSeconds)
	}
	export.InternalTrafficPolicy = valueOf(spec.InternalTrafficPolicy)
	export.TrafficDistribution = valueOf(spec.TrafficDistribution)
	return export
}

// constituents returns the exporters of the merged service: those that are known to export, and the held ones that
// the import names already.
func constituents(known []clusterset.ClusterID, serviceImport *mcsv1beta1.ServiceImport, held map[clusterset.ClusterID]bool) []clusterset.ClusterID {
	result := slices.DeleteFunc(slices.Clone(known), func(id clusterset.ClusterID) bool { return id == "" })
	if serviceImport != nil {
		for _, status := range serviceImport.Status.Clusters {
			if id := clusterset.ClusterID(status.Cluster); held[id] {
				result = append(result, id)
			}
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}

// site returns what this cluster adds to the merged service. Addresses and their order outlive everything but a change
// between headless and not (spec I5).
func site(v view, merged merge.Merged) render.Site {
	result := render.Site{IPFamilies: v.ownFamilies, Unknown: v.unknown}
	recorded := ""
	if i := v.serviceImport; i != nil && clusterset.IsManaged(i.Labels) {
		recorded = i.Annotations[clusterset.AnnotationDerivedService]
		if i.Spec.Type == mcsv1beta1.ClusterSetIP && merged.Type == mcsv1beta1.ClusterSetIP && len(i.Spec.IPs) > 0 {
			result.IPs, result.Established = i.Spec.IPs, i.Spec.IPFamilies
		}
	}
	result.DerivedName = render.DerivedName(v.known.Key.Name, recorded, v.named, v.recorded)
	for _, service := range v.derived() {
		sameKind := (service.Spec.ClusterIP == corev1.ClusterIPNone) == (merged.Type == mcsv1beta1.Headless)
		if service.Name != result.DerivedName || !sameKind {
			continue
		}
		result.Established = service.Spec.IPFamilies
		if merged.Type == mcsv1beta1.ClusterSetIP && len(result.IPs) == 0 { // the import was deleted, and this may have to be replaced
			result.IPs = service.Spec.ClusterIPs
		}
	}
	return result
}

// concerned returns the mirrored slices that the decision covers: all but those that are kept.
func (d decision) concerned(mirrored []*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
	return slices.DeleteFunc(slices.Clone(mirrored), func(s *discoveryv1.EndpointSlice) bool { return d.kept[s.Name] })
}

func without(metadata map[string]string, key string) map[string]string {
	result := map[string]string{}
	for k, v := range metadata {
		if k != key {
			result[k] = v
		}
	}
	return result
}

func valueOf[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
