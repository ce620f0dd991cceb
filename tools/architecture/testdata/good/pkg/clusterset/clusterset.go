// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterset holds the nouns.
package clusterset

// Names is a table that is only read.
var Names = map[string]int{"a": 1}

// ClusterID names a cluster.
type ClusterID string
