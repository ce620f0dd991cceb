// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan holds state.
package plan

import (
	"sync"

	"example.com/bad/tools/vendored" // want: import-order
)

var (
	mu      sync.Mutex
	count   int
	table   = map[string][]int{}
	current = &struct{ name string }{}
)

// Plan remembers its callers.
func Plan(name string) {
	mu.Lock()
	defer mu.Unlock()
	count++                                  // want: package-state
	table[name] = append(table[name], count) // want: package-state
	current.name = name                      // want: package-state
	current, count = nil, vendored.Unwelcome // want: package-state
	delete(table, name)                      // want: package-state
	vendored.Unwelcome = 3                   // want: package-state
	local := count
	local++
	_ = local
}
