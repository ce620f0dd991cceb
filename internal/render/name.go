// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// DerivedName returns the name of a service's derived Service (spec D2): the name that its ServiceImport records, otherwise the name
// of an existing derived Service, otherwise the short name, or the long name if the short one is taken. A name is taken by a
// Service, or by another import that records it and whose Service does not exist at present. services are the Services of the
// namespace that have the short or the long name. others are the names that other imports of the namespace record. A recorded name
// that is neither of the two was edited by another user and is ignored.
func DerivedName(service, recorded string, services []*corev1.Service, others []string) string {
	short, long := clusterset.ShortDerivedName(service), clusterset.LongDerivedName(service)
	byName := map[string]*corev1.Service{}
	for _, s := range services {
		byName[s.Name] = s
	}
	isFree := func(name string) bool {
		return byName[name] == nil && !slices.Contains(others, name) || byName[name] != nil && IsDerivedFor(byName[name], service)
	}
	switch {
	case recorded == long, recorded == short && isFree(short):
		return recorded
	case byName[short] != nil && IsDerivedFor(byName[short], service):
		return short
	case byName[long] != nil && IsDerivedFor(byName[long], service), !isFree(short):
		return long
	}
	return short
}

// IsDerivedFor reports whether s is the derived Service for the named service of its namespace.
func IsDerivedFor(s *corev1.Service, service string) bool {
	return clusterset.IsManaged(s.Labels) && s.Labels[mcsv1beta1.LabelServiceName] == service
}
