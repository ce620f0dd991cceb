// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command agent runs the controllers.
package main

import (
	"example.com/good/controllers/imports"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var started int

func main() {
	started++
	_ = imports.Reconcile
	var c client.Client
	_ = c.Create(nil)
}
