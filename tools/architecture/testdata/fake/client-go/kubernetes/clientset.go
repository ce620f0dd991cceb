// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes stands in for the typed clients.
package kubernetes

// ServiceInterface is a typed client.
type ServiceInterface interface {
	Get(name string) error
	Delete(name string) error
}
