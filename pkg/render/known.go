// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/merge"
)

// LeftOut returns the settings of the merged service that this cluster's API server does not know, sorted by field. The
// import works as if no exporter had asked for them (spec D6).
func LeftOut(m merge.Merged, site Site) []clusterset.Setting {
	return slices.DeleteFunc(settings(m), func(s clusterset.Setting) bool { return !site.Unknown[s] })
}

// Refused returns those settings of the derived Service that an API server which refuses these of its fields does not
// know. Fields are called as in the API server's errors.
func Refused(m merge.Merged, site Site, fields []string) []clusterset.Setting {
	return slices.DeleteFunc(settings(known(m, site)), func(s clusterset.Setting) bool { return !slices.Contains(fields, "spec."+s.Field) })
}

// Dropped returns those settings of the derived Service that the API server did not take over, as it does with fields
// that it does not know. written is the Service as it was answered.
func Dropped(m merge.Merged, site Site, written *corev1.Service) []clusterset.Setting {
	return slices.DeleteFunc(settings(known(m, site)), func(s clusterset.Setting) bool { return s.Value == settingOf(written, s.Field) })
}

// MetadataLeftOut returns the domains of the merged service's labels and annotations that this cluster does not admit, sorted. Each
// domain has to be named: it does not admit its subdomains.
func MetadataLeftOut(m merge.Merged, site Site) []string {
	var domains []string
	for _, metadata := range []map[string]string{m.Labels, m.Annotations} {
		for key := range metadata {
			if !admits(site, key) {
				domains = append(domains, clusterset.MetadataDomain(key))
			}
		}
	}
	slices.Sort(domains)
	return slices.Compact(domains)
}

// admits reports whether a cluster takes over labels and annotations of this key. Which domains mean something to a mesh, a load
// balancer or a GitOps tool of a cluster, only its administrators know.
func admits(site Site, key string) bool {
	domain := clusterset.MetadataDomain(key)
	return domain == "" || slices.Contains(site.MetadataDomains, domain)
}

// admitted returns the labels or annotations that a cluster takes over.
func admitted(metadata map[string]string, site Site) map[string]string {
	result := maps.Clone(metadata)
	maps.DeleteFunc(result, func(key, _ string) bool { return !admits(site, key) })
	return result
}

// known returns the merged service without the settings that this cluster's API server does not know, and without metadata that
// this cluster does not admit. Conflicts are found before that, so that they are the same in all clusters (spec R7).
func known(m merge.Merged, site Site) merge.Merged {
	m.Labels, m.Annotations = admitted(m.Labels, site), admitted(m.Annotations, site)
	for _, setting := range LeftOut(m, site) {
		switch setting.Field {
		case clusterset.FieldInternalTrafficPolicy:
			m.InternalTrafficPolicy = ""
		case clusterset.FieldTrafficDistribution:
			m.TrafficDistribution = ""
		}
	}
	return m
}

// settings returns what the merged service asks for in the fields to which versions of Kubernetes add values.
func settings(m merge.Merged) []clusterset.Setting {
	return slices.DeleteFunc([]clusterset.Setting{
		{Field: clusterset.FieldInternalTrafficPolicy, Value: string(m.InternalTrafficPolicy)},
		{Field: clusterset.FieldTrafficDistribution, Value: m.TrafficDistribution},
	}, func(s clusterset.Setting) bool { return s.Value == "" })
}

// settingOf returns the value of a field that settings are about; empty where the Service has none.
func settingOf(service *corev1.Service, field string) string {
	switch {
	case field == clusterset.FieldInternalTrafficPolicy && service.Spec.InternalTrafficPolicy != nil:
		return string(*service.Spec.InternalTrafficPolicy)
	case field == clusterset.FieldTrafficDistribution && service.Spec.TrafficDistribution != nil:
		return *service.Spec.TrafficDistribution
	}
	return ""
}
