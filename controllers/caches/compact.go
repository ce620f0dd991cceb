// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
)

var withoutManagedFields = cache.TransformStripManagedFields()

// StripManagedFields is a transform function of a cache: it removes managed fields. If an object has lost our managed-by label, it
// keeps the entry that shows that we wrote the object. It returns its argument, changed.
func StripManagedFields(object any) (any, error) {
	written, _ := object.(metav1.Object)
	isLost := written != nil && clusterset.HasLostLabel(written)
	object, err := withoutManagedFields(object)
	if isLost {
		written.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: clusterset.FieldManager}})
	}
	return object, err
}

// Compact is StripManagedFields, and reduces the memory of objects: all share the names of labels and annotations. Endpoints of managed
// slices are only compared, so a digest is sufficient. From other slices, it removes unused fields, spare capacity and duplicate values. It
// returns its argument, changed.
func Compact(object any) (any, error) {
	object, err := StripManagedFields(object)
	if o, ok := object.(metav1.Object); ok {
		shareNames(o.GetLabels())
		shareNames(o.GetAnnotations())
	}
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok {
		return object, err
	}
	if isManaged(slice) {
		slice.Endpoints = plan.Condense(slice.Endpoints)
		return slice, err
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
	return slice, err
}

// sharedValues are the labels that have the same value in many objects.
var sharedValues = map[string]bool{
	discoveryv1.LabelManagedBy: true, clusterset.LabelManagedBy: true, mcsv1beta1.LabelSourceCluster: true,
}

// shareNames replaces the names, and the values that many objects have, by equal strings that all objects share.
func shareNames(all map[string]string) {
	for name, value := range all {
		if sharedValues[name] {
			value = unique.Make(value).Value()
		}
		all[unique.Make(name).Value()] = value // a map takes the new name, although it is equal
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
