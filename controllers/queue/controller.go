// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// AddController adds a controller to a manager that may run already. Its workers begin when all its sources are in sync: those that
// are added to a controller which is started are not waited for.
func AddController(mgr manager.Manager, name string, options controller.Options, from ...source.Source) error {
	options.DefaultFromConfig(mgr.GetControllerOptions())
	c, err := controller.NewUnmanaged(name, options)
	if err != nil {
		return fmt.Errorf("create controller %s: %w", name, err)
	}
	for _, s := range from {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("add a source to controller %s: %w", name, err)
		}
	}
	return mgr.Add(c)
}
