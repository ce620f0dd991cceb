// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package merge is pure.
package merge

import (
	"time"

	"example.com/good/pkg/clusterset"
)

// Oldest returns the older of two times; times as values are welcome in a pure package.
func Oldest(a, b time.Time) time.Time {
	counts := map[string]int{}
	counts["a"] = clusterset.Names["a"]
	counts["a"]++
	delete(counts, "a")
	if a.After(b) {
		return b
	}
	return a
}
