// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package api holds the hub's types.
package api

import (
	"example.com/good/pkg/clusterset"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Member is a member.
type Member struct {
	ID      clusterset.ClusterID
	Since   metav1.Time
	Service corev1.Service
}
