// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package caches defines what the caches of the member's objects store and index.
package caches

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Names of the indexes over EndpointSlices, Services and ServiceImports.
const (
	// IndexSource finds the slices of a Service, except managed ones, by the Service's name.
	IndexSource = "tombolo.source"
	// IndexMirror finds the mirrored slices of an import by the import's name.
	IndexMirror = "tombolo.mirror"
	// IndexVirtual finds the Services of an import's virtual IPs, and their slices, by the import's name.
	IndexVirtual = "tombolo.virtual"
	// IndexAliases finds the aliases of an import by the import's name, and IndexAliasSlices the managed slices of an alias by the alias'
	// name.
	IndexAliases     = "tombolo.aliases"
	IndexAliasSlices = "tombolo.alias-slices"
	// IndexDerived finds managed imports by the name that they have recorded for their derived Service.
	IndexDerived = "tombolo.derived"
)

// AddIndexes adds the indexes that this package and the controllers need to a cache.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &discoveryv1.EndpointSlice{}, IndexSource, SourceIndex); err != nil {
		return fmt.Errorf("index EndpointSlices by their Service: %w", err)
	}
	if err := indexer.IndexField(ctx, &discoveryv1.EndpointSlice{}, IndexMirror, indexOf(MirroredService)); err != nil {
		return fmt.Errorf("index EndpointSlices by their ServiceImport: %w", err)
	}
	for _, object := range []client.Object{&corev1.Service{}, &discoveryv1.EndpointSlice{}} {
		if err := indexer.IndexField(ctx, object, IndexVirtual, indexOf(VirtualIPService)); err != nil {
			return fmt.Errorf("index %s by the ServiceImport of its virtual IP: %w", clusterset.KindOf(object), err)
		}
	}
	if err := indexer.IndexField(ctx, &corev1.Service{}, IndexAliases, importOfAlias); err != nil {
		return fmt.Errorf("index Services by the ServiceImport whose aliases they are: %w", err)
	}
	if err := indexer.IndexField(ctx, &discoveryv1.EndpointSlice{}, IndexAliasSlices, indexOf(AliasService)); err != nil {
		return fmt.Errorf("index EndpointSlices by their alias: %w", err)
	}
	if err := indexer.IndexField(ctx, &mcsv1beta1.ServiceImport{}, IndexDerived, recordedName); err != nil {
		return fmt.Errorf("index ServiceImports by their derived Service: %w", err)
	}
	return nil
}

// SourceIndex is the function of IndexSource.
func SourceIndex(slice client.Object) []string { return indexOf(SourceService)(slice) }

func indexOf(keyOf func(client.Object) (types.NamespacedName, bool)) client.IndexerFunc {
	return func(object client.Object) []string {
		key, ok := keyOf(object)
		if !ok {
			return nil
		}
		return []string{key.Name}
	}
}

func recordedName(serviceImport client.Object) []string {
	name := serviceImport.GetAnnotations()[clusterset.AnnotationDerivedService]
	if name == "" || !clusterset.IsManaged(serviceImport.GetLabels()) {
		return nil
	}
	return []string{name}
}

// importOfAlias returns the import of an alias; nothing for other Services, and if the alias can have none.
func importOfAlias(object client.Object) []string {
	service, ok := object.(*corev1.Service)
	if !ok || !clusterset.IsAlias(service) {
		return nil
	}
	name, err := clusterset.AliasImport(service)
	if err != nil {
		return nil
	}
	return []string{name}
}

// SourceService returns the Service that an EndpointSlice belongs to, and false for managed slices: mirrored ones, and those of virtual
// IPs and of aliases, also if they have lost their label. What it does not return is never exported.
func SourceService(slice client.Object) (types.NamespacedName, bool) {
	name := slice.GetLabels()[discoveryv1.LabelServiceName]
	return types.NamespacedName{Namespace: slice.GetNamespace(), Name: name}, name != "" && !isManaged(slice) && !clusterset.HasLostLabel(slice)
}

// MirroredService returns the service of a mirrored slice, and false for other slices.
func MirroredService(slice client.Object) (types.NamespacedName, bool) {
	name := slice.GetLabels()[mcsv1beta1.LabelServiceName]
	return types.NamespacedName{Namespace: slice.GetNamespace(), Name: name}, name != "" && isManaged(slice)
}

// AliasService returns the alias of one of its managed slices, and false for other slices. The name of the slice says which one it is.
func AliasService(slice client.Object) (types.NamespacedName, bool) {
	key, ok := NamedForAlias(slice)
	return key, ok && isManaged(slice) && slice.GetLabels()[clusterset.LabelAliasOf] != ""
}

// NamedForAlias returns the Service that would have an EndpointSlice of this name as an alias, whatever the labels of the slice are, and
// false if no alias would.
func NamedForAlias(slice client.Object) (types.NamespacedName, bool) {
	alias, _, ok := clusterset.AliasOf(slice.GetName())
	return types.NamespacedName{Namespace: slice.GetNamespace(), Name: alias}, ok
}

// isManaged reports whether an EndpointSlice is managed by Tombolo.
func isManaged(slice client.Object) bool {
	return slice.GetLabels()[discoveryv1.LabelManagedBy] == clusterset.ManagedBy
}

// DerivedService returns the imported service of a derived Service, and false for other Services.
func DerivedService(service client.Object) (types.NamespacedName, bool) {
	name := service.GetLabels()[mcsv1beta1.LabelServiceName]
	return types.NamespacedName{Namespace: service.GetNamespace(), Name: name}, name != "" && clusterset.IsManaged(service.GetLabels())
}

// VirtualIPService returns the imported service of the Service of a virtual IP, or of one of its slices, and false for other objects.
func VirtualIPService(object client.Object) (types.NamespacedName, bool) {
	name := object.GetLabels()[clusterset.LabelVirtualIPOf]
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: name}, name != "" && clusterset.ManagerOf(object) == clusterset.ManagedBy
}
