// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// AddController adds a controller to a manager that may be running. Its workers start when all its sources are synced. A started
// controller does not wait for sources that are added later, so all must be given here.
func AddController(mgr manager.Manager, name string, options controller.Options, from ...source.Source) error {
	options.DefaultFromConfig(mgr.GetControllerOptions())
	c, err := controller.NewUnmanaged(name, options)
	if err != nil {
		return fmt.Errorf("create controller %s: %w", name, err)
	}
	if retries, ok := options.Reconciler.(*Retries); ok {
		from = append(from, retries.source())
	}
	for _, s := range from {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("add a source to controller %s: %w", name, err)
		}
	}
	return mgr.Add(c)
}
