// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// ServeOldAPI has a cluster serve only v1alpha1 of the Multi-Cluster Services API, as with the CRDs of an older release. The objects stay.
// InstallCRDs puts the CRDs back.
func ServeOldAPI(ctx context.Context, c client.Client) error {
	for _, kind := range []string{mcsv1beta1.ServiceExportPluralName, mcsv1beta1.ServiceImportPluralName} {
		err := changeDefinition(ctx, c, kind+"."+mcsv1beta1.GroupVersion.Group, func(version map[string]any) {
			version["served"] = version["name"] == "v1alpha1"
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// WithoutStatus removes the status subresource of a kind of the Multi-Cluster Services API.
func WithoutStatus(ctx context.Context, c client.Client, plural string) error {
	return changeDefinition(ctx, c, plural+"."+mcsv1beta1.GroupVersion.Group, func(version map[string]any) { delete(version, "subresources") })
}

// changeDefinition changes each version of a CRD.
func changeDefinition(ctx context.Context, c client.Client, name string, change func(version map[string]any)) error {
	d := &unstructured.Unstructured{}
	d.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := c.Get(ctx, client.ObjectKey{Name: name}, d); err != nil {
			return err
		}
		versions, found, err := unstructured.NestedSlice(d.Object, "spec", "versions")
		if err != nil || !found {
			return fmt.Errorf("CRD %s has no versions: %w", name, err)
		}
		for _, version := range versions {
			change(version.(map[string]any))
		}
		if err := unstructured.SetNestedSlice(d.Object, versions, "spec", "versions"); err != nil {
			return err
		}
		return c.Update(ctx, d)
	})
}
