// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// GrantsIn returns the ServiceExportGrants of a namespace. A cluster without their kind has none. They must not be changed.
func GrantsIn(ctx context.Context, from client.Reader, namespace string) ([]policyv1alpha1.ServiceExportGrant, error) {
	var list policyv1alpha1.ServiceExportGrantList
	err := from.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("list ServiceExportGrants of namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}
