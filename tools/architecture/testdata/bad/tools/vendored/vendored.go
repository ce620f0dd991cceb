// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package vendored is a tool.
package vendored

// Unwelcome is a variable.
var Unwelcome = 1
