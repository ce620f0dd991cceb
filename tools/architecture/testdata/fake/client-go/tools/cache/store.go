// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cache stands in for client-go's caches.
package cache

// Store is a cache: changing it changes no cluster.
type Store interface {
	Update(obj any) error
	Delete(obj any) error
}
