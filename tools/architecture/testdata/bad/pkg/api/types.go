// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package api must not know clients.
package api

import (
	_ "example.com/bad/pkg/plan" // want: import-order
	_ "k8s.io/apimachinery/pkg/apis/meta/v1"
	_ "k8s.io/client-go/tools/cache" // want: import-order
)
