// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply changes clusters.
package apply

import "sigs.k8s.io/controller-runtime/pkg/client"

// Applier applies changes.
type Applier struct{ Client client.Client }

// Apply creates an object and writes its status.
func (a Applier) Apply(obj client.Object) error {
	if err := a.Client.Create(obj); err != nil {
		return err
	}
	return a.Client.Status().Update(obj)
}
