// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Object is an object of any kind.
type Object interface {
	metav1.Object
	runtime.Object
}

// ErrChanged reports that an API server has stored other values than those of a change, because a policy or a webhook changes them.
var ErrChanged = errors.New("the API server has stored other values: a policy or a webhook of this cluster changes them")

// Any returns changes of one kind as changes of any kind.
func Any[T Object](changes []Change[T]) []Change[Object] {
	var result []Change[Object]
	for _, c := range changes {
		change := Change[Object]{Verb: c.Verb, Object: c.Object}
		if c.Verb != Create {
			change.Existing = c.Existing
		}
		result = append(result, change)
	}
	return result
}

// IsSame reports whether two changes write the same: the labels, annotations, spec and status of Services and ServiceImports, and the
// endpoints of EndpointSlices; for deletions, whether they delete the same object.
func IsSame(a, b Change[Object]) bool {
	if a.Verb != b.Verb || !isSameObject(a.Object, b.Object) {
		return false
	}
	if a.Verb == Delete {
		return true
	}
	if !maps.Equal(a.Object.GetLabels(), b.Object.GetLabels()) || !maps.Equal(a.Object.GetAnnotations(), b.Object.GetAnnotations()) {
		return false
	}
	switch x := a.Object.(type) {
	case *corev1.Service:
		return equality.Semantic.DeepEqual(x.Spec, b.Object.(*corev1.Service).Spec)
	case *discoveryv1.EndpointSlice:
		y := b.Object.(*discoveryv1.EndpointSlice)
		return x.AddressType == y.AddressType && equality.Semantic.DeepEqual(x.Ports, y.Ports) && sameEndpoints(x.Endpoints, y.Endpoints)
	case *mcsv1beta1.ServiceImport:
		y := b.Object.(*mcsv1beta1.ServiceImport)
		if a.Verb == UpdateStatus {
			return equality.Semantic.DeepEqual(x.Status, y.Status)
		}
		return equality.Semantic.DeepEqual(x.Spec, y.Spec)
	}
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}

// isSameObject reports whether two objects have the same type and key.
func isSameObject(a, b Object) bool {
	if a.GetNamespace() != b.GetNamespace() || a.GetName() != b.GetName() {
		return false
	}
	switch a.(type) {
	case *corev1.Service:
		_, same := b.(*corev1.Service)
		return same
	case *discoveryv1.EndpointSlice:
		_, same := b.(*discoveryv1.EndpointSlice)
		return same
	case *mcsv1beta1.ServiceImport:
		_, same := b.(*mcsv1beta1.ServiceImport)
		return same
	}
	return false
}

// IsKept reports whether the object that an API server has stored has what the change sets. Further labels and annotations, such as those
// that an admission policy adds, do not matter.
func IsKept(change Change[Object], stored Object) bool {
	if change.Verb == UpdateStatus {
		wanted, isImport := change.Object.(*mcsv1beta1.ServiceImport)
		return !isImport || equality.Semantic.DeepEqual(wanted.Status, stored.(*mcsv1beta1.ServiceImport).Status)
	}
	if !contains(stored.GetLabels(), change.Object.GetLabels()) || !contains(stored.GetAnnotations(), change.Object.GetAnnotations()) {
		return false
	}
	switch wanted := change.Object.(type) {
	case *corev1.Service:
		overlaid := stored.(*corev1.Service).DeepCopy()
		overlayService(overlaid, wanted)
		return equality.Semantic.DeepEqual(stored.(*corev1.Service).Spec, overlaid.Spec)
	case *discoveryv1.EndpointSlice:
		got := stored.(*discoveryv1.EndpointSlice)
		return equality.Semantic.DeepEqual(wanted.Ports, got.Ports) && sameEndpoints(got.Endpoints, wanted.Endpoints)
	case *mcsv1beta1.ServiceImport:
		return equality.Semantic.DeepEqual(wanted.Spec, stored.(*mcsv1beta1.ServiceImport).Spec)
	}
	return true
}

// Metadata are labels and annotations.
type Metadata struct{ Labels, Annotations map[string]string }

// IsEmpty reports whether there are none.
func (m Metadata) IsEmpty() bool { return len(m.Labels)+len(m.Annotations) == 0 }

// MetadataOf returns the labels and annotations of an object.
func MetadataOf(object metav1.Object) Metadata {
	return Metadata{object.GetLabels(), object.GetAnnotations()}
}

// AddedTo returns the labels and annotations of a stored object that the written object does not have: those that an admission policy of the
// cluster adds.
func AddedTo(written, stored Metadata) Metadata {
	return Metadata{more(stored.Labels, written.Labels), more(stored.Annotations, written.Annotations)}
}

// more returns the entries of a map whose keys another one lacks; nil if there are none.
func more(all, some map[string]string) map[string]string {
	var result map[string]string
	for key, value := range all {
		if _, known := some[key]; !known {
			if result == nil {
				result = map[string]string{}
			}
			result[key] = value
		}
	}
	return result
}

// contains reports whether a map has all entries of another.
func contains(all, some map[string]string) bool {
	for key, value := range some {
		if got, ok := all[key]; !ok || got != value {
			return false
		}
	}
	return true
}
