// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// DerivedName returns the name of a service's derived Service (spec D2): the one that its ServiceImport records, else
// the one that a derived Service of ours already bears, else the short name, or the long one where something else
// has taken that: a Service, or another import that has recorded it and whose Service is missing at present. services
// are those of the namespace that bear either name, others the names that its other imports have recorded. A recorded
// name that we never give is somebody's edit, and is not believed.
func DerivedName(service, recorded string, services []*corev1.Service, others []string) string {
	short, long := clusterset.ShortDerivedName(service), clusterset.LongDerivedName(service)
	holder := map[string]*corev1.Service{}
	for _, s := range services {
		holder[s.Name] = s
	}
	free := func(name string) bool {
		return holder[name] == nil && !slices.Contains(others, name) || holder[name] != nil && IsDerivedFor(holder[name], service)
	}
	switch {
	case recorded == long, recorded == short && free(short):
		return recorded
	case holder[short] != nil && IsDerivedFor(holder[short], service):
		return short
	case holder[long] != nil && IsDerivedFor(holder[long], service), !free(short):
		return long
	}
	return short
}

// IsDerivedFor reports whether s is our derived Service for the named service of its namespace.
func IsDerivedFor(s *corev1.Service, service string) bool {
	return clusterset.IsManaged(s.Labels) && s.Labels[mcsv1beta1.LabelServiceName] == service
}
