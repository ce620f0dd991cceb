// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oracle asks the product what the product should do, at its own time.
package oracle // want: purity

import (
	"time"

	_ "example.com/bad/pkg/clusterset" // want: import-order
	_ "example.com/bad/pkg/merge"      // want: import-order
)

var _ = time.Now // want: purity
