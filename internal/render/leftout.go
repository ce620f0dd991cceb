// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// SettingsLeftOut returns the settings of the merged service that the local API server does not support, sorted by field. They are
// ignored (spec D6).
func SettingsLeftOut(m merge.Merged, site Site) []clusterset.Setting {
	return slices.DeleteFunc(settings(m), func(s clusterset.Setting) bool { return !site.UnknownSettings[s] })
}

// RefusedSettings returns the settings of the derived Service that are in fields which the API server refused as invalid. fields are
// as in the API server's errors.
func RefusedSettings(m merge.Merged, site Site, fields []string) []clusterset.Setting {
	return slices.DeleteFunc(settings(withoutLeftOut(m, site)), func(s clusterset.Setting) bool { return !slices.Contains(fields, "spec."+s.Field) })
}

// DroppedSettings returns the settings of the derived Service that the API server did not store, because it does not have the field.
// written is the Service as the API server returned it.
func DroppedSettings(m merge.Merged, site Site, written *corev1.Service) []clusterset.Setting {
	return slices.DeleteFunc(settings(withoutLeftOut(m, site)), func(s clusterset.Setting) bool { return s.Value == settingOf(written, s.Field) })
}

// MetadataLeftOut returns the domains of the merged service's labels and annotations that this cluster does not allow, sorted.
// Subdomains of an allowed domain are not allowed.
func MetadataLeftOut(m merge.Merged, site Site) []string {
	var domains []string
	for _, metadata := range []map[string]string{m.Labels, m.Annotations} {
		for key := range metadata {
			if !allowsKey(site, key) {
				domains = append(domains, clusterset.MetadataDomain(key))
			}
		}
	}
	slices.Sort(domains)
	return slices.Compact(domains)
}

// allowsKey reports whether a cluster imports labels and annotations with this key. Only administrators know which domains have an
// effect in their cluster, such as those of a mesh, a load balancer or a GitOps tool.
func allowsKey(site Site, key string) bool {
	domain := clusterset.MetadataDomain(key)
	return domain == "" || slices.Contains(site.MetadataDomains, domain)
}

// allowedMetadata returns the labels or annotations that a cluster imports.
func allowedMetadata(metadata map[string]string, site Site) map[string]string {
	result := maps.Clone(metadata)
	maps.DeleteFunc(result, func(key, _ string) bool { return !allowsKey(site, key) })
	return result
}

// withoutLeftOut returns the merged service without the settings that the local API server does not support, and without metadata
// that this cluster does not allow. Conflicts are computed before, so that they are the same in all clusters (spec R7).
func withoutLeftOut(m merge.Merged, site Site) merge.Merged {
	m.Labels, m.Annotations = allowedMetadata(m.Labels, site), allowedMetadata(m.Annotations, site)
	for _, setting := range SettingsLeftOut(m, site) {
		switch setting.Field {
		case clusterset.FieldInternalTrafficPolicy:
			m.InternalTrafficPolicy = ""
		case clusterset.FieldTrafficDistribution:
			m.TrafficDistribution = ""
		}
	}
	return m
}

// settings returns the values of the merged service in those fields to which new versions of Kubernetes add values.
func settings(m merge.Merged) []clusterset.Setting {
	return slices.DeleteFunc([]clusterset.Setting{
		{Field: clusterset.FieldInternalTrafficPolicy, Value: string(m.InternalTrafficPolicy)},
		{Field: clusterset.FieldTrafficDistribution, Value: m.TrafficDistribution},
	}, func(s clusterset.Setting) bool { return s.Value == "" })
}

// settingOf returns the value of such a field of a Service; empty if the field is not set.
func settingOf(service *corev1.Service, field string) string {
	switch {
	case field == clusterset.FieldInternalTrafficPolicy && service.Spec.InternalTrafficPolicy != nil:
		return string(*service.Spec.InternalTrafficPolicy)
	case field == clusterset.FieldTrafficDistribution && service.Spec.TrafficDistribution != nil:
		return *service.Spec.TrafficDistribution
	}
	return ""
}
