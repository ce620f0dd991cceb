// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// AllPorts returns the ports of a mirrored slice, including its withheld ports.
func AllPorts(slice *discoveryv1.EndpointSlice) []discoveryv1.EndpointPort {
	var withheld []discoveryv1.EndpointPort
	if err := json.Unmarshal([]byte(slice.Annotations[clusterset.AnnotationWithheldPorts]), &withheld); err != nil {
		return slice.Ports // there is no annotation, or another user has edited it
	}
	return slices.Concat(slice.Ports, withheld)
}

// Withhold returns a mirrored slice that has the named ports only. It stores the other ports in an annotation, because the hub may
// no longer have them. The argument is not changed.
func Withhold(slice *discoveryv1.EndpointSlice, serving []string) *discoveryv1.EndpointSlice {
	ports := AllPorts(slice)
	serves := func(p discoveryv1.EndpointPort) bool { return slices.Contains(serving, ptr.Deref(p.Name, "")) }
	withheld := slices.DeleteFunc(slices.Clone(ports), serves)
	result := *slice
	if result.Annotations = maps.Clone(slice.Annotations); len(withheld) == 0 {
		delete(result.Annotations, clusterset.AnnotationWithheldPorts)
		result.Ports = ports
		return &result
	}
	content, err := json.Marshal(withheld)
	if err != nil { // cannot happen: the fields are strings and numbers
		return slice
	}
	if result.Annotations == nil {
		result.Annotations = map[string]string{}
	}
	result.Annotations[clusterset.AnnotationWithheldPorts] = string(content)
	result.Ports = slices.DeleteFunc(slices.Clone(ports), func(p discoveryv1.EndpointPort) bool { return !serves(p) })
	return &result
}

// MergedNames returns the merged names of ports, by their names in the mirrored slices.
func MergedNames(m merge.Merged) map[string]string {
	result := map[string]string{}
	for merged, names := range slicePortNames(m) {
		for _, name := range names {
			result[name] = merged
		}
	}
	return result
}

// SliceNames returns the names of merged ports in the mirrored slices.
func SliceNames(m merge.Merged, merged []string) []string {
	names := slicePortNames(m)
	var result []string
	for _, name := range merged {
		result = append(result, names[name]...)
	}
	return result
}

// ExportOf returns the export from which a derived Service was rendered, without the exporter, its age and its annotations, which a
// Service does not contain.
func ExportOf(service *corev1.Service, key clusterset.ServiceKey, selection *clusterset.Selection) clusterset.Export {
	spec := service.Spec
	export := clusterset.Export{
		Key:                   key,
		Type:                  mcsv1beta1.ClusterSetIP,
		IPFamilies:            spec.IPFamilies,
		Affinity:              clusterset.Affinity{Mode: spec.SessionAffinity},
		InternalTrafficPolicy: ptr.Deref(spec.InternalTrafficPolicy, ""),
		TrafficDistribution:   ptr.Deref(spec.TrafficDistribution, ""),
		Labels:                maps.Clone(service.Labels),
		Selection:             selection,
	}
	for _, key := range []string{mcsv1beta1.LabelServiceName, clusterset.LabelServiceImported, clusterset.LabelManagedBy} {
		delete(export.Labels, key)
	}
	if spec.ClusterIP == corev1.ClusterIPNone {
		export.Type, export.Affinity = mcsv1beta1.Headless, clusterset.Affinity{}
	}
	if config := spec.SessionAffinityConfig; config != nil && config.ClientIP != nil {
		export.Affinity.TimeoutSeconds = ptr.Deref(config.ClientIP.TimeoutSeconds, 0)
	}
	for _, port := range spec.Ports {
		export.Ports = append(export.Ports, clusterset.Port{
			Name: exportedName(port.Name), Protocol: port.Protocol, Port: port.Port, AppProtocol: ptr.Deref(port.AppProtocol, ""),
		})
	}
	return export
}

// exportedName returns the merged name of a derived Service's port. It is the inverse of servicePortNames.
func exportedName(name string) string {
	if name == unnamed {
		return ""
	}
	if strings.HasPrefix(name, unnamed+"-") {
		return unnamed
	}
	return name
}
