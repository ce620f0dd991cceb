// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// isOurs reports whether an object is Tombolo's to write: it bears the mark.
func isOurs(object metav1.Object) bool {
	switch o := object.(type) {
	case *corev1.Service:
		return isDerived(*o)
	case *discoveryv1.EndpointSlice:
		return isMirrored(*o)
	case *mcsv1beta1.ServiceImport:
		return isOurImport(*o)
	}
	return false
}

// keyOf returns the service that an object belongs to.
func keyOf(object metav1.Object) Key {
	key := Key{Namespace: object.GetNamespace(), Name: object.GetName()}
	switch o := object.(type) {
	case *corev1.Service:
		if isDerived(*o) {
			key.Name = o.Labels[labelServiceName]
		}
	case *discoveryv1.EndpointSlice:
		if isMirrored(*o) {
			key.Name = o.Labels[labelServiceName]
		} else if service := o.Labels[labelSliceService]; service != "" {
			key.Name = service
		}
	case *hubv1alpha1.PublishedService:
		return Key{Namespace: string(o.Spec.Namespace), Name: string(o.Spec.Service)}
	case *hubv1alpha1.PublishedEndpoints:
		return Key{Namespace: string(o.Spec.Namespace), Name: string(o.Spec.Service)}
	}
	return key
}

func isExport(object metav1.Object) bool {
	_, ok := object.(*mcsv1beta1.ServiceExport)
	return ok
}

// content returns what only an object's owner may change of it. The status of a ServiceExport is Tombolo's.
func content(object metav1.Object) []any {
	result := []any{object.GetLabels(), object.GetAnnotations(), object.GetFinalizers(), object.GetUID()}
	switch o := object.(type) {
	case *corev1.Service:
		result = append(result, o.Spec)
	case *discoveryv1.EndpointSlice:
		result = append(result, o.AddressType, o.Ports, o.Endpoints)
	case *mcsv1beta1.ServiceImport:
		result = append(result, o.Spec, o.Status)
	case *mcsv1beta1.ServiceExport:
		result = append(result, o.Spec)
	}
	return result
}

func addresses(s *discoveryv1.EndpointSlice) map[string]bool {
	result := map[string]bool{}
	for _, e := range s.Endpoints {
		for _, a := range e.Addresses {
			result[a] = true
		}
	}
	return result
}

// served returns each endpoint of a slice at each of its ports.
func served(s *discoveryv1.EndpointSlice) map[string]bool {
	result := map[string]bool{}
	for _, port := range portTexts(s.Ports) {
		for address := range addresses(s) {
			result[address+" at "+port] = true
		}
	}
	return result
}

func name(object metav1.Object) string { return fmt.Sprintf("%T %s", object, object.GetName()) }
