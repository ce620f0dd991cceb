// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render may import merge: both are pure.
package render

import (
	"time"

	"example.com/good/pkg/merge"
)

// Render returns the older of two times.
func Render(a, b time.Time) time.Time { return merge.Oldest(a, b) }
