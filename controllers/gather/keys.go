// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// ExportKeys returns the services for which this cluster has ServiceExports.
func (r Reader) ExportKeys(ctx context.Context) ([]clusterset.ServiceKey, error) {
	return r.ExportKeysIn(ctx, "")
}

// ExportKeysIn returns those of a namespace, or all if it is empty.
func (r Reader) ExportKeysIn(ctx context.Context, namespace string) ([]clusterset.ServiceKey, error) {
	list := &mcsv1beta1.ServiceExportList{}
	if err := r.Member.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ServiceExports: %w", err)
	}
	return keys(caches.Pointers(list.Items)), nil
}

// KeysByCluster returns the services about which more than the records of the other members decides: those of the namespaces whose grants name
// clusters, or select them by their properties, and those whose ports have a PROXY protocol header.
func (r Reader) KeysByCluster(ctx context.Context) ([]clusterset.ServiceKey, error) {
	grants, err := caches.GrantsIn(ctx, r.Grants, "")
	if err != nil {
		return nil, err
	}
	var result []clusterset.ServiceKey
	for _, namespace := range sets.List(access.NamespacesByCluster(grants)) {
		keys, err := r.ExportKeysIn(ctx, namespace)
		if err != nil {
			return nil, err
		}
		result = append(result, keys...)
	}
	list := &mcsv1beta1.ServiceExportList{}
	if err := r.Member.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ServiceExports: %w", err)
	}
	for i := range list.Items {
		if clusterset.HasProxyProtocol(&list.Items[i]) {
			result = append(result, client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	return result, nil
}

// ImportKeys returns the services for which this cluster has ServiceImports.
func (r Reader) ImportKeys(ctx context.Context) ([]clusterset.ServiceKey, error) {
	list := &mcsv1beta1.ServiceImportList{}
	if err := r.Member.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ServiceImports: %w", err)
	}
	return keys(caches.Pointers(list.Items)), nil
}

// DerivedKeys returns the services for which this cluster has derived Services, mirrored slices or virtual IPs. They have no ServiceImport if an
// agent was stopped during a withdrawal.
func (r Reader) DerivedKeys(ctx context.Context) ([]clusterset.ServiceKey, error) {
	services := &corev1.ServiceList{}
	if err := r.Member.List(ctx, services, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Services: %w", err)
	}
	mirrored := &discoveryv1.EndpointSliceList{}
	if err := r.Member.List(ctx, mirrored, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list EndpointSlices: %w", err)
	}
	found := map[clusterset.ServiceKey]bool{}
	for i := range services.Items {
		for _, keyOf := range []func(client.Object) (clusterset.ServiceKey, bool){caches.DerivedService, caches.VirtualIPService} {
			if key, ok := keyOf(&services.Items[i]); ok {
				found[key] = true
			}
		}
	}
	for i := range mirrored.Items {
		for _, keyOf := range []func(client.Object) (clusterset.ServiceKey, bool){caches.MirroredService, caches.VirtualIPService} {
			if key, ok := keyOf(&mirrored.Items[i]); ok {
				found[key] = true
			}
		}
	}
	return slices.Collect(maps.Keys(found)), nil
}

func keys[T client.Object](objects []T) []clusterset.ServiceKey {
	result := make([]clusterset.ServiceKey, len(objects))
	for i, object := range objects {
		result[i] = client.ObjectKeyFromObject(object)
	}
	return result
}
