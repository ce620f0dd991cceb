// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditions reaches a client through another module.
package conditions // want: purity

import _ "k8s.io/api/indirect"
