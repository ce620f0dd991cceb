// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package imports is a controller.
package imports

import (
	"time"

	"example.com/good/pkg/apply"
	"example.com/good/pkg/hub"
	"example.com/good/pkg/merge"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = hub.Forget

// Reconcile reads, decides and applies.
func Reconcile(c client.Client, a apply.Applier, obj client.Object) error {
	_ = merge.Oldest(time.Now(), time.Now())
	if err := c.Get("x", obj); err != nil {
		return err
	}
	return a.Apply(obj)
}
