// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
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

// filter returns the items that match.
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
	if isReserved(namespace) {
		return false
	}
	for _, denied := range c.Denied {
		if namespace == denied {
			return false
		}
	}
	for _, n := range c.Namespaces {
		if n.Name == namespace {
			return n.DeletionTimestamp == nil
		}
	}
	return false
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
