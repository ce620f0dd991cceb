// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package imports writes past pkg/apply.
package imports

import (
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

type creator interface {
	Create(obj client.Object, opts ...client.CreateOption) error
}

// Reconcile does what it must not.
func Reconcile(c client.Client, own creator, services kubernetes.ServiceInterface, obj client.Object) error {
	_ = c.Get("x", obj)
	_ = c.Create(obj)                         // want: cluster-write
	_ = c.Status().Update(obj)                // want: cluster-write
	_ = own.Create(obj)                       // want: cluster-write
	_ = services.Delete("x")                  // want: cluster-write
	_ = controllerutil.CreateOrUpdate(c, obj) // want: cluster-write
	patch := c.Patch                          // want: cluster-write
	return patch(obj)
}
