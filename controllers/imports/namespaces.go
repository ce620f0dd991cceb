// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/importing"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// NamespacePolicy selects the namespaces of a cluster into which services are imported.
type NamespacePolicy struct {
	// Allowed are the allowed namespaces. If empty, all namespaces that are not denied are allowed.
	Allowed []string
	// Denied are the denied namespaces, the agent's own among them.
	Denied []string
}

// Allows reports whether services of a namespace are imported. Reserved namespaces never are.
func (p NamespacePolicy) Allows(namespace string) bool {
	return !clusterset.IsReservedNamespace(namespace) &&
		!slices.Contains(p.Denied, namespace) &&
		(len(p.Allowed) == 0 || slices.Contains(p.Allowed, namespace))
}

// servicesOfNamespace enqueues all services of a namespace that the hub stores, if the namespace is created or changed.
func (r *Reconciler) servicesOfNamespace() handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, namespace *metav1.PartialObjectMetadata) []reconcile.Request {
		var requests []reconcile.Request
		for _, key := range r.Sources.Hub.KeysIn(namespace.Name) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
		return requests
	})
}

// namespaceState returns the state of a namespace.
func (r *Reconciler) namespaceState(ctx context.Context, namespace string) (importing.NamespaceState, error) {
	found := caches.NamespaceMetadata()
	exists, err := caches.Get(ctx, r.Member, client.ObjectKey{Name: namespace}, found)
	switch {
	case err != nil || !exists || !found.DeletionTimestamp.IsZero():
		return importing.NamespaceNotFound, err
	case !r.Namespaces.Allows(namespace):
		return importing.NamespaceDenied, nil
	}
	return importing.NamespaceAllowed, nil
}
