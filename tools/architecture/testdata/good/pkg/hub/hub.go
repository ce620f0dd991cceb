// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub connects to the hub.
package hub

import (
	"example.com/good/pkg/api"
	"k8s.io/client-go/tools/cache"
)

// Forget removes a member from a cache, which is no write to a cluster.
func Forget(store cache.Store, m api.Member) error { return store.Delete(m) }
