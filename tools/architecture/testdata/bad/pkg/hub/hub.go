// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub must not know controllers.
package hub

import _ "example.com/bad/controllers/imports" // want: import-order
