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

// ListRoutingPolicies returns the ServiceImportRoutingPolicies of a namespace, or all if it is empty. A cluster without their kind
// has none. They must not be changed.
func ListRoutingPolicies(ctx context.Context, from client.Reader, namespace string) ([]*policyv1alpha1.ServiceImportRoutingPolicy, error) {
	list := &policyv1alpha1.ServiceImportRoutingPolicyList{}
	err := from.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("list ServiceImportRoutingPolicies: %w", err)
	}
	return Pointers(list.Items), nil
}
