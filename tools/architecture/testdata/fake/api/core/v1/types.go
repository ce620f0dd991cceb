// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 stands in for k8s.io/api/core/v1.
package v1

// Service is empty.
type Service struct{}
