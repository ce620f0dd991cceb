// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterset is a CoreDNS plugin that serves the names of the Kubernetes Multi-Cluster Services API (KEP-1645)
// out of a cluster's ServiceImports and the EndpointSlices that were imported with them, whichever implementation wrote
// them.
//
// Data flow: watch.go reads objects, record.go keeps of each what DNS needs, table.go knows which services
// changed, service.go builds those (a pure function), publish.go puts them into the zones. The way of a query:
// handler.go, zone.go, directory.go, node.go, answer.go; it sees each service whole, and waits for nothing but an answer
// that is being made already.
package clusterset
