// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the kinds that say who may use exported services, and which clusters serve imports. Owners of applications
// write ServiceExportGrants and ServiceImportRoutingPolicies, administrators ClusterServiceAccessPolicies.
//
// +kubebuilder:object:generate=true
// +groupName=policy.tombolo-mcs.io
package v1alpha1
