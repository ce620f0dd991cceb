// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oracle knows the hub's types and nothing else of the product.
package oracle

import _ "example.com/good/pkg/api"
