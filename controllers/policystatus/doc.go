// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policystatus writes the status of the objects with which users decide about services: Access that of ServiceExportGrants and
// ClusterServiceAccessPolicies, Routing that of ServiceImportRoutingPolicies. It is the only writer of these statuses.
package policystatus
