// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 stands in for apimachinery's meta/v1.
package v1

import "time"

// Time is a point in time.
type Time struct{ time.Time }

// Now returns the time of the clock.
func Now() Time { return Time{time.Now()} }
