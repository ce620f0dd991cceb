// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterset is a CoreDNS plugin that serves the names of the Kubernetes Multi-Cluster Services API (KEP-1645) from a
// cluster's ServiceImports and mirrored EndpointSlices, with any implementation of the API.
//
// Data flow: watch.go reads objects, record.go extracts the fields that DNS needs, table.go finds the services that changed,
// service.go builds those (a pure function), publish.go puts them into the zones. A query passes handler.go, zone.go, directory.go,
// node.go and answer.go. It uses one consistent state of each service, and waits only for an answer that is being built.
package clusterset
