// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// What Tombolo and KEP-1645 call things, written down once more: a constant that changed by mistake would go unseen.
const (
	ours = "tombolo-mcs.io"

	labelManagedBy      = "app.kubernetes.io/managed-by"
	labelSliceManagedBy = "endpointslice.kubernetes.io/managed-by"
	labelSliceService   = "kubernetes.io/service-name"
	labelHeadless       = "service.kubernetes.io/headless"
	labelServiceName    = "multicluster.kubernetes.io/service-name"
	labelSourceCluster  = "multicluster.kubernetes.io/source-cluster"
	labelImported       = "multicluster.kubernetes.io/service-imported"
	annotationDerived   = "multicluster.kubernetes.io/derived-service"
)

func isDerived(s corev1.Service) bool {
	return s.Labels[labelManagedBy] == ours && s.Labels[labelServiceName] != ""
}

func isMirrored(s discoveryv1.EndpointSlice) bool {
	return s.Labels[labelSliceManagedBy] == ours && s.Labels[labelServiceName] != ""
}

func isOurImport(i mcsv1beta1.ServiceImport) bool { return i.Labels[labelManagedBy] == ours }

// find returns the object of that name; nil if there is none.
func find[T any, P interface {
	*T
	metav1.Object
}](items []T, key Key) P {
	for i := range items {
		if o := P(&items[i]); o.GetNamespace() == key.Namespace && o.GetName() == key.Name {
			return o
		}
	}
	return nil
}

func filter[T any](items []T, match func(T) bool) []T {
	var found []T
	for _, item := range items {
		if match(item) {
			found = append(found, item)
		}
	}
	return found
}

func (c Cluster) service(key Key) *corev1.Service { return find(c.Services, key) }

func (c Cluster) export(key Key) *mcsv1beta1.ServiceExport { return find(c.Exports, key) }

func (c Cluster) serviceImport(key Key) *mcsv1beta1.ServiceImport { return find(c.Imports, key) }

// derived returns the derived Services of a key: there must not be more than one.
func (c Cluster) derived(key Key) []corev1.Service {
	return filter(c.Services, func(s corev1.Service) bool {
		return isDerived(s) && s.Namespace == key.Namespace && s.Labels[labelServiceName] == key.Name
	})
}

func (c Cluster) mirrored(key Key) []discoveryv1.EndpointSlice {
	return filter(c.Slices, func(s discoveryv1.EndpointSlice) bool {
		return isMirrored(s) && s.Namespace == key.Namespace && s.Labels[labelServiceName] == key.Name
	})
}

// sources returns the slices of the cluster's own Service of that name.
func (c Cluster) sources(key Key) []discoveryv1.EndpointSlice {
	return filter(c.Slices, func(s discoveryv1.EndpointSlice) bool {
		return !isMirrored(s) && s.Namespace == key.Namespace && s.Labels[labelSliceService] == key.Name
	})
}

// takes reports whether services of a namespace are imported here: it exists, is not about to go, and is not denied.
func (c Cluster) takes(namespace string) bool {
	found := find(c.Namespaces, Key{Name: namespace})
	return found != nil && found.DeletionTimestamp == nil && !isReserved(namespace) && !slices.Contains(c.Denied, namespace)
}

// families are those that Services of the cluster can have.
func (c Cluster) families() []corev1.IPFamily {
	var found []corev1.IPFamily
	for _, cidr := range c.ServiceCIDRs {
		if cidr.Addr().Is4() {
			found = append(found, corev1.IPv4Protocol)
		} else {
			found = append(found, corev1.IPv6Protocol)
		}
	}
	return found
}

func isReserved(namespace string) bool {
	return slices.Contains([]string{"kube-system", "kube-public", "kube-node-lease", "tombolo-system"}, namespace) || strings.HasPrefix(namespace, "member-")
}

// objects returns all objects of the cluster that belong to a service.
func (c Cluster) objects() []metav1.Object {
	return slices.Concat(asObjects(c.Services), asObjects(c.Slices), asObjects(c.Exports), asObjects(c.Imports))
}

func asObjects[T any, P interface {
	*T
	metav1.Object
}](items []T) []metav1.Object {
	var all []metav1.Object
	for i := range items {
		all = append(all, P(&items[i]))
	}
	return all
}

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
