// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterset must not know the merge.
package clusterset // want: purity

import _ "example.com/bad/pkg/merge" // want: import-order
