// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/internal/preference"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// decision is the desired state of one service in this cluster.
type decision struct {
	state  exportState
	merged merge.Merged
	site   render.Site
	// slices are the source slices to mirror.
	slices []clusterset.Slice
	// virtual are the desired virtual IPs.
	virtual virtualIPs
	// kept are the desired mirrored slices whose source slices are missing on the hub.
	kept []*discoveryv1.EndpointSlice
	// choice says which level of the import's policy serves each port; empty if no policy applies.
	choice preference.Choice
}

// exportState says whether any cluster exports a service.
type exportState string

const (
	// exported: a cluster exports the service, or may export it.
	exported exportState = "exported"
	// withdrawn: no cluster exports the service.
	withdrawn exportState = "withdrawn"
	// undecided: a cluster may export the service, but too little is left to restore its import. Existing objects stay.
	undecided exportState = "undecided"
)

// decide returns which exports form the import and which endpoints it uses. It is pure.
func decide(v view) decision {
	if v.Namespace == NamespaceDenied { // whatever is known of the exporters
		return decision{state: withdrawn}
	}
	missing := missingExporters(v)
	exports, incomplete := v.exports()
	merged, ok := merge.Merge(exports)
	switch {
	case !ok && incomplete:
		return decision{state: undecided}
	case !ok:
		return decision{state: withdrawn}
	}
	d := decision{state: exported, merged: merged}
	d.merged.Clusters = exporters(v, missing)
	d.site = site(v, d.merged)
	sources := v.Routing.allowed(d.merged, sourceSlices(v, d.merged))
	d.slices = liveness.Serving(d.merged, v.Policies, sources)
	d.kept = kept(v, d.merged, sources)
	d.virtual = v.desiredVirtualIPs()
	if v.Routing.applies(d.merged) {
		d.choice = v.Routing.choose(v, d)
		d.slices, d.kept = v.Routing.restrict(d)
	}
	d.slices = widened(v, d)
	return d
}

// exports returns the exports that form the import. If some may be missing, the existing import is one of them, and incomplete is set.
func (v view) exports() (exports []clusterset.Export, incomplete bool) {
	exports = v.Sources.Exports()
	if incomplete = len(missingExporters(v)) > 0 || v.hasUnknownExporters() && !v.Sources.Hub.Synced(); incomplete {
		exports = slices.Concat(exports, v.existingExports())
	}
	return exports, incomplete
}

// importType returns the type of the import: that of the oldest export.
func (v view) importType() mcsv1beta1.ServiceImportType {
	exports, _ := v.exports()
	if len(exports) == 0 {
		return ""
	}
	return slices.MinFunc(exports, merge.Older).Type
}

// sourceSlices returns the source slices of all exporters, each with the state of its member. It omits local slices if the derived
// Service has a selector: Kubernetes then creates slices for the local pods, and no pod must be in two slices (spec D8).
func sourceSlices(v view, merged merge.Merged) []liveness.Source {
	mirrored := map[sliceKey][]string{}
	for _, slice := range v.Mirrored {
		mirrored[keyOf(slice)] = mergedPorts(merged, slice.Ports)
	}
	var result []liveness.Source
	for _, slice := range slices.Concat(v.Sources.Hub.Slices, gatewaySlices(v)) {
		result = append(result, liveness.Source{
			Slice: slice, State: v.states[slice.Cluster], Mirrored: mirrored[sliceKey{slice.Cluster, slice.ID}],
		})
	}
	if merged.Selection != nil {
		return result
	}
	for _, slice := range v.LocalSlices {
		result = append(result, liveness.Source{Slice: slice, State: liveness.Live})
	}
	return result
}

// sliceKey identifies a source slice of one service.
type sliceKey struct {
	cluster clusterset.ClusterID
	id      string
}

// keyOf returns the key of the source slice of a mirrored slice.
func keyOf(mirrored *discoveryv1.EndpointSlice) sliceKey {
	cluster := SourceOf(mirrored)
	prefix := clusterset.MirroredSliceName(mirrored.Labels[discoveryv1.LabelServiceName], cluster, "")
	return sliceKey{cluster, strings.TrimPrefix(mirrored.Name, prefix)}
}

// mergedPorts returns the merged names of the ports of a mirrored slice, each once. The result is not nil.
func mergedPorts(m merge.Merged, ports []discoveryv1.EndpointPort) []string {
	merged, names := render.MergedNames(m), []string{}
	for _, port := range ports {
		if name := merged[ptr.Deref(port.Name, "")]; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// kept returns the desired mirrored slices whose source slices are missing. Slices of silent members omit the ports that live
// members serve.
func kept(v view, m merge.Merged, sources []liveness.Source) []*discoveryv1.EndpointSlice {
	served := liveness.ServedBy(m, sources)
	var result []*discoveryv1.EndpointSlice
	for _, slice := range v.Mirrored {
		source := keyOf(slice)
		if !keeps(v, slice) {
			continue
		}
		serving := liveness.KeptPorts(v.Policies[m.Type], served, liveness.Kept{
			State: v.states[source.cluster], Family: slice.AddressType, Ports: mergedPorts(m, render.AllPorts(slice)),
		})
		desired := render.Withhold(slice, render.SliceNames(m, serving))
		if IsGatewaySlice(slice) && m.Type != mcsv1beta1.Headless { // the endpoints of a headless one are virtual IPs
			desired = keptGateway(v, desired)
		}
		result = append(result, desired)
	}
	return result
}

// keeps reports whether a mirrored slice stays although there is no source slice for it, because that is missing: for a slice of gateways
// the export, for any other its record. The addresses of an exporter that this cluster does not reach directly stay only until the
// gateways listen for it.
func keeps(v view, slice *discoveryv1.EndpointSlice) bool {
	source := keyOf(slice)
	missing := v.missing[source.cluster]
	if IsGatewaySlice(slice) {
		return missing.Export
	}
	if v.awaitsGateways(source.cluster) {
		return true
	}
	path, exports := v.path[source.cluster]
	return slices.Contains(missing.Slices, source.id) && (!exports || path == reach.Direct)
}

// missingExporters returns the clusters that the import or its slices name and whose export is missing.
func missingExporters(v view) map[clusterset.ClusterID]bool {
	result := map[clusterset.ClusterID]bool{}
	for id, missing := range v.missing {
		if missing.Export {
			result[id] = true
		}
	}
	return result
}

// existingExports returns the existing import as the oldest export of no cluster. While exports are missing, it preserves the
// fields on which they agreed. If the import was deleted, it is restored from its derived Service. The result is empty if neither
// exists.
func (v view) existingExports() []clusterset.Export {
	if i := v.managedImport(); i != nil {
		return []clusterset.Export{exportOfImport(i, v.Selection)}
	}
	for _, service := range v.derivedServices() {
		return []clusterset.Export{render.ExportOf(service, v.Sources.Key, v.Selection)}
	}
	return nil
}

// exportOfImport returns an import as an export.
func exportOfImport(serviceImport *mcsv1beta1.ServiceImport, selection *clusterset.Selection) clusterset.Export {
	spec := serviceImport.Spec
	export := clusterset.Export{
		Key:         clusterset.ServiceKey{Namespace: serviceImport.Namespace, Name: serviceImport.Name},
		Type:        spec.Type,
		IPFamilies:  spec.IPFamilies,
		Affinity:    clusterset.Affinity{Mode: spec.SessionAffinity},
		Labels:      withoutKey(serviceImport.Labels, clusterset.LabelManagedBy),
		Annotations: withoutKey(serviceImport.Annotations, clusterset.AnnotationDerivedService),
		Selection:   selection,
	}
	for _, port := range spec.Ports {
		export.Ports = append(export.Ports, clusterset.Port{
			Name: port.Name, Protocol: port.Protocol, Port: port.Port, AppProtocol: ptr.Deref(port.AppProtocol, ""),
		})
	}
	if config := spec.SessionAffinityConfig; config != nil && config.ClientIP != nil {
		export.Affinity.TimeoutSeconds = ptr.Deref(config.ClientIP.TimeoutSeconds, 0)
	}
	export.InternalTrafficPolicy = ptr.Deref(spec.InternalTrafficPolicy, "")
	export.TrafficDistribution = ptr.Deref(spec.TrafficDistribution, "")
	return export
}

// exporters returns the exporters of the service: those whose exports are known, and the missing ones that the import or its slices
// already name.
func exporters(v view, missing map[clusterset.ClusterID]bool) []clusterset.ClusterID {
	var result []clusterset.ClusterID
	for _, export := range v.Sources.Exports() {
		result = append(result, export.Cluster)
	}
	if !v.hasUnknownExporters() {
		result = slices.AppendSeq(result, maps.Keys(missing))
	}
	slices.Sort(result)
	return slices.Compact(result)
}

// site returns what rendering needs to know of this cluster. Addresses and their order change only if the service changes between
// headless and not (spec I5).
func site(v view, merged merge.Merged) render.Site {
	result := render.Site{IPFamilies: v.Families, Gateway: v.usesGateway(), UnknownSettings: v.Unsupported, MetadataDomains: v.MetadataDomains}
	recorded := ""
	if i := v.managedImport(); i != nil {
		recorded = i.Annotations[clusterset.AnnotationDerivedService]
		if i.Spec.Type == mcsv1beta1.ClusterSetIP && merged.Type == mcsv1beta1.ClusterSetIP && len(i.Spec.IPs) > 0 {
			result.IPs, result.ExistingFamilies = i.Spec.IPs, i.Spec.IPFamilies
		}
	}
	if v.managedImport() == nil && merged.Type == mcsv1beta1.ClusterSetIP {
		result.IPs, result.ExistingFamilies = v.Retained, familiesOf(v.Retained)
	}
	if v.AddressesLost {
		result.IPs = nil // other addresses are better than none
	}
	result.DerivedName = render.DerivedName(v.Sources.Key.Name, recorded, v.Services, v.TakenNames)
	for _, service := range v.derivedServices() {
		sameKind := (service.Spec.ClusterIP == corev1.ClusterIPNone) == (merged.Type == mcsv1beta1.Headless)
		if service.Name != result.DerivedName || !sameKind || service.Spec.ClusterIP == "" { // an ExternalName Service has no cluster IP and no families
			continue
		}
		result.ExistingFamilies = service.Spec.IPFamilies
		if merged.Type == mcsv1beta1.ClusterSetIP && len(result.IPs) == 0 { // the import was deleted, and the Service may be replaced
			result.IPs = service.Spec.ClusterIPs
		}
	}
	return result
}

// familiesOf returns the IP families of addresses.
func familiesOf(addresses []string) []corev1.IPFamily {
	var result []corev1.IPFamily
	for _, text := range addresses {
		if address, err := netip.ParseAddr(text); err == nil {
			result = append(result, clusterset.FamilyOf(address))
		}
	}
	return result
}

func withoutKey(metadata map[string]string, key string) map[string]string {
	result := map[string]string{}
	for k, v := range metadata {
		if k != key {
			result[k] = v
		}
	}
	return result
}
