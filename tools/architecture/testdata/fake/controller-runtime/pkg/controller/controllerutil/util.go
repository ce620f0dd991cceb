// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllerutil stands in for controller-runtime's.
package controllerutil

import "sigs.k8s.io/controller-runtime/pkg/client"

// CreateOrUpdate writes.
func CreateOrUpdate(c client.Client, obj client.Object) error { return c.Create(obj) }
