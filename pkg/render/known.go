// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
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

// known returns the merged service without the settings that this cluster's API server does not know.
func known(m merge.Merged, site Site) merge.Merged {
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
