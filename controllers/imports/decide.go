// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
	"github.com/tombolo-mcs/tombolo/pkg/merge"
	"github.com/tombolo-mcs/tombolo/pkg/render"
)

// decision says what this cluster should hold of one service.
type decision struct {
	verdict verdict
	merged  merge.Merged
	site    render.Site
	// slices are the sources whose endpoints are used.
	slices []clusterset.Slice
	// kept are the mirrored slices whose sources are missing, as they are to be. Their endpoints stay.
	kept []*discoveryv1.EndpointSlice
}

// verdict says what becomes of an import.
type verdict string

const (
	// exported: a cluster exports the service, or may do so.
	exported verdict = "exported"
	// withdrawn: no cluster exports it.
	withdrawn verdict = "withdrawn"
	// undecided: a cluster may export it, and too little is left here to restore its import. What is left stays.
	undecided verdict = "undecided"
)

// decide is the one place that says which exports form the import and whose endpoints it uses. It is pure.
func decide(v view) decision {
	exports := v.known.Exports()
	held := held(v)
	unsure := len(held) > 0 || v.isRemnant() && !v.known.Hub.Synced()
	if unsure {
		exports = append(exports, v.established()...)
	}
	merged, ok := merge.Merge(exports)
	switch {
	case !ok && unsure:
		return decision{verdict: undecided}
	case !ok:
		return decision{verdict: withdrawn}
	}
	d := decision{verdict: exported, merged: merged}
	d.merged.Clusters = constituents(v, held)
	d.site = site(v, d.merged)
	sources := candidates(v, d.merged)
	d.slices = liveness.Serving(d.merged, v.policies, sources)
	d.kept = kept(v, d.merged, sources)
	return d
}

// candidates returns the slices of all exporters, each with what is known of its cluster's life. The own ones are not
// among them where the derived Service has a selector: Kubernetes finds the pods, and none must be there twice (spec D8).
func candidates(v view, merged merge.Merged) []liveness.Source {
	mirrored := map[sliceKey][]string{}
	for _, slice := range v.mirrored {
		mirrored[keyOf(slice)] = mergedPorts(merged, slice.Ports)
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

// mergedPorts returns the merged names of ports of a mirrored slice; not nil.
func mergedPorts(m merge.Merged, ports []discoveryv1.EndpointPort) []string {
	merged, names := render.MergedNames(m), []string{}
	for _, port := range ports {
		names = append(names, merged[valueOf(port.Name)])
	}
	return names
}

// kept returns the mirrored slices whose sources are missing, as they are to be: those of silent members leave the ports that live
// ones serve.
func kept(v view, m merge.Merged, sources []liveness.Source) []*discoveryv1.EndpointSlice {
	served := liveness.ServedBy(m, sources)
	var result []*discoveryv1.EndpointSlice
	for _, slice := range v.mirrored {
		source := keyOf(slice)
		if !slices.Contains(v.missing[source.cluster].Slices, source.id) {
			continue
		}
		serving := liveness.KeptPorts(v.policies[m.Type], served, liveness.Kept{
			State: v.states[source.cluster], Family: slice.AddressType, Ports: mergedPorts(m, render.AllPorts(slice)),
		})
		result = append(result, render.Withhold(slice, render.SliceNames(m, serving)))
	}
	return result
}

// held returns the clusters that the import or its slices name and whose export is missing.
func held(v view) map[clusterset.ClusterID]bool {
	result := map[clusterset.ClusterID]bool{}
	for id, missing := range v.missing {
		if missing.Export {
			result[id] = true
		}
	}
	return result
}

// established returns the import as it stands, as if it were the oldest export, so that what held clusters agreed on stays in
// force until more is known of them. It belongs to no cluster. A deleted import is restored from its derived Service; without
// either there is none.
func (v view) established() []clusterset.Export {
	if i := v.ownImport(); i != nil {
		return []clusterset.Export{established(i, v.selection)}
	}
	for _, service := range v.derived() {
		return []clusterset.Export{render.ExportOf(service, v.known.Key, v.selection)}
	}
	return nil
}

// established returns an import as an export.
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

// constituents returns the exporters of the service: those that are known to export, and the held ones that the import or its
// slices name already.
func constituents(v view, held map[clusterset.ClusterID]bool) []clusterset.ClusterID {
	var result []clusterset.ClusterID
	for _, export := range v.known.Exports() {
		result = append(result, export.Cluster)
	}
	if !v.isRemnant() {
		result = slices.AppendSeq(result, maps.Keys(held))
	}
	slices.Sort(result)
	return slices.Compact(result)
}

// site returns what this cluster adds to the merged service. Addresses and their order outlive everything but a change
// between headless and not (spec I5).
func site(v view, merged merge.Merged) render.Site {
	result := render.Site{IPFamilies: v.ownFamilies, Unknown: v.unknown, MetadataDomains: v.metadataDomains}
	recorded := ""
	if i := v.ownImport(); i != nil {
		recorded = i.Annotations[clusterset.AnnotationDerivedService]
		if i.Spec.Type == mcsv1beta1.ClusterSetIP && merged.Type == mcsv1beta1.ClusterSetIP && len(i.Spec.IPs) > 0 {
			result.IPs, result.Established = i.Spec.IPs, i.Spec.IPFamilies
		}
	}
	result.DerivedName = render.DerivedName(v.known.Key.Name, recorded, v.named, v.recorded)
	for _, service := range v.derived() {
		sameKind := (service.Spec.ClusterIP == corev1.ClusterIPNone) == (merged.Type == mcsv1beta1.Headless)
		if service.Name != result.DerivedName || !sameKind || service.Spec.ClusterIP == "" { // edited to an ExternalName, it has no family either
			continue
		}
		result.Established = service.Spec.IPFamilies
		if merged.Type == mcsv1beta1.ClusterSetIP && len(result.IPs) == 0 { // the import was deleted, and this may have to be replaced
			result.IPs = service.Spec.ClusterIPs
		}
	}
	return result
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
