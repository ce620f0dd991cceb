// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"maps"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var withoutManagedFields = cache.TransformStripManagedFields()

// StripManagedFields is a transform function of a cache: it removes managed fields. If an object has lost our managed-by label, it
// keeps the entry that shows that we wrote the object, and if a ServiceExport with our label is a user's, the entry that shows it. It
// returns its argument, changed.
func StripManagedFields(object any) (any, error) {
	written, _ := object.(metav1.Object)
	kept := significantManager(written)
	object, err := withoutManagedFields(object)
	if kept != "" {
		written.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: kept}})
	}
	return object, err
}

// significantManager returns the field manager that decides whose an object is; empty if its label says it. written may be nil.
func significantManager(written metav1.Object) string {
	if written == nil {
		return ""
	}
	if clusterset.HasLostLabel(written) {
		return clusterset.FieldManager
	}
	if export, ok := written.(*mcsv1beta1.ServiceExport); ok && clusterset.IsManaged(export.Labels) {
		return clusterset.OtherWriter(export)
	}
	return ""
}

// Compact is StripManagedFields, and reduces the memory of objects: all share equal strings, and lists have no spare capacity. Endpoints of
// managed slices are only compared, so a digest is sufficient. From other slices, it removes unused fields. It returns its argument, changed.
func Compact(object any) (any, error) {
	object, err := StripManagedFields(object)
	if o, ok := object.(metav1.Object); ok {
		if maps.Equal(o.GetLabels(), onlyManaged) {
			o.SetLabels(onlyManaged)
		} else {
			shareNames(o.GetLabels())
		}
		shareNames(o.GetAnnotations())
	}
	switch o := object.(type) {
	case *discoveryv1.EndpointSlice:
		compactSlice(o)
	case *corev1.Service:
		compactService(o)
	case *mcsv1beta1.ServiceImport:
		compactImport(o)
	}
	return object, err
}

func compactSlice(slice *discoveryv1.EndpointSlice) {
	slice.AddressType = share(slice.AddressType)
	for i := range slice.Ports {
		shareOptional(slice.Ports[i].Name)
		shareOptional(slice.Ports[i].Protocol)
	}
	if isManaged(slice) {
		slice.Endpoints = plan.Condense(slice.Endpoints)
		return
	}
	slice.Endpoints = slices.Clone(slice.Endpoints)
	zones := pool[string]{}
	conditions := pool[bool]{}
	addresses := allAddresses(slice.Endpoints)
	for i := range slice.Endpoints {
		e := &slice.Endpoints[i]
		n := len(e.Addresses)
		e.Addresses, addresses = addresses[:n:n], addresses[n:]
		e.Zone = zones.share(e.Zone)
		e.Conditions.Ready = conditions.share(e.Conditions.Ready)
		e.Conditions.Serving = conditions.share(e.Conditions.Serving)
		e.Conditions.Terminating = conditions.share(e.Conditions.Terminating)
		e.TargetRef, e.DeprecatedTopology = nil, nil
	}
}

func compactService(service *corev1.Service) {
	spec := &service.Spec
	spec.Type, spec.SessionAffinity = share(spec.Type), share(spec.SessionAffinity)
	shareOptional(spec.IPFamilyPolicy)
	shareOptional(spec.InternalTrafficPolicy)
	if len(spec.ClusterIPs) > 0 && spec.ClusterIPs[0] == spec.ClusterIP {
		spec.ClusterIP = spec.ClusterIPs[0]
	}
	shareAll(spec.IPFamilies)
	for i := range spec.Ports {
		spec.Ports[i].Name, spec.Ports[i].Protocol = share(spec.Ports[i].Name), share(spec.Ports[i].Protocol)
	}
}

// compactImport copies lists, because a list that was decoded from JSON has a capacity of four at least.
func compactImport(serviceImport *mcsv1beta1.ServiceImport) {
	serviceImport.TypeMeta = metav1.TypeMeta{Kind: share(serviceImport.Kind), APIVersion: share(serviceImport.APIVersion)}
	spec, status := &serviceImport.Spec, &serviceImport.Status
	spec.Type, spec.SessionAffinity = share(spec.Type), share(spec.SessionAffinity)
	shareOptional(spec.InternalTrafficPolicy)
	spec.Ports, spec.IPs, spec.IPFamilies = slices.Clone(spec.Ports), slices.Clone(spec.IPs), slices.Clone(spec.IPFamilies)
	shareAll(spec.IPFamilies)
	for i := range spec.Ports {
		spec.Ports[i].Name, spec.Ports[i].Protocol = share(spec.Ports[i].Name), share(spec.Ports[i].Protocol)
	}
	status.Clusters, status.Conditions = slices.Clone(status.Clusters), slices.Clone(status.Conditions)
	for i := range status.Clusters {
		status.Clusters[i].Cluster = share(status.Clusters[i].Cluster)
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		c.Type, c.Status, c.Reason, c.Message = share(c.Type), share(c.Status), share(c.Reason), share(c.Message)
	}
}

// share returns an equal string that all callers share.
func share[S ~string](s S) S { return unique.Make(s).Value() }

func shareAll[S ~string](all []S) {
	for i, s := range all {
		all[i] = share(s)
	}
}

func shareOptional[S ~string](s *S) {
	if s != nil {
		*s = share(*s)
	}
}

// onlyManaged are the labels of an import whose exporters export none. Nothing changes the maps of objects in a cache.
var onlyManaged = map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}

// sharedValues are the labels that have the same value in many objects.
var sharedValues = map[string]bool{
	discoveryv1.LabelManagedBy: true, clusterset.LabelManagedBy: true, mcsv1beta1.LabelSourceCluster: true,
}

// shareNames replaces the names, and the values that many objects have, by equal strings that all objects share.
func shareNames(all map[string]string) {
	for name, value := range all {
		if sharedValues[name] {
			value = share(value)
		}
		all[share(name)] = value // a map takes the new name, although it is equal
	}
}

// NamespaceMetadata returns an empty Namespace of which only the metadata is read and stored.
func NamespaceMetadata() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// Pointers returns pointers to the items of a list.
func Pointers[T any](items []T) []*T {
	result := make([]*T, len(items))
	for i := range items {
		result[i] = &items[i]
	}
	return result
}

// allAddresses returns the addresses of all endpoints, in order.
func allAddresses(endpoints []discoveryv1.Endpoint) []string {
	n := 0
	for i := range endpoints {
		n += len(endpoints[i].Addresses)
	}
	all := make([]string, 0, n)
	for i := range endpoints {
		all = append(all, endpoints[i].Addresses...)
	}
	return all
}

// pool has one pointer to each value.
type pool[T comparable] map[T]*T

func (p pool[T]) share(value *T) *T {
	if value == nil {
		return nil
	}
	if _, known := p[*value]; !known {
		p[*value] = value
	}
	return p[*value]
}
