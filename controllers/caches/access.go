// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/access"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// AccessObjects returns the objects that say who may use the services of a cluster. A cluster without their kinds has none.
func AccessObjects(ctx context.Context, from client.Reader) (access.Objects, error) {
	var policies policyv1alpha1.ClusterServiceAccessPolicyList
	var grants policyv1alpha1.ServiceExportGrantList
	var namespaces corev1.NamespaceList
	for _, list := range []client.ObjectList{&policies, &grants, &namespaces} {
		if err := from.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil && !meta.IsNoMatchError(err) {
			return access.Objects{}, fmt.Errorf("list %s: %w", clusterset.KindOf(list), err)
		}
	}
	result := access.Objects{Policies: policies.Items, Grants: grants.Items, Namespaces: map[string]labels.Set{}}
	for i := range namespaces.Items {
		if n := &namespaces.Items[i]; n.DeletionTimestamp.IsZero() { // its grants may be deleted before its exports
			result.Namespaces[n.Name] = n.Labels
		}
	}
	return result, nil
}
