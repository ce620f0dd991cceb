// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helpers has no place.
package helpers // want: import-order
