// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package indirect reaches a client.
package indirect

import _ "k8s.io/client-go/kubernetes"
