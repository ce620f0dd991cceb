// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterset is a CoreDNS plugin that serves the names of the Kubernetes Multi-Cluster Services API (KEP-1645) from a
// cluster's ServiceImports and mirrored EndpointSlices, with any implementation of the API.
//
// Data flow: watch.go reads objects, zone/record.go extracts the fields that DNS needs, table.go finds the services that changed,
// zone/service.go builds those services, publish.go puts them into the zones. A query passes handler.go, and in package zone the files
// zone.go, directory.go, node.go and answer.go. A query uses one consistent state of each service, and waits only for an answer that is
// being built.
package clusterset
