// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds that members of a clusterset exchange on the hub. A member writes in its own
// namespace there and reads these kinds in all: the namespace of an object, never a field in it, says whose it is.
//
// Every list is bounded, because a member may be hostile, and atomic, which keeps managedFields small.
//
// +kubebuilder:object:generate=true
// +groupName=hub.tombolo-mcs.io
package v1alpha1
