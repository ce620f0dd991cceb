// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterset defines the data types of a clusterset: who exports (ClusterID), what is exported (ServiceKey, Export, Port),
// its endpoints (Slice, Endpoint, AddressRanges), and the names, labels and annotations of objects that clusters exchange.
//
// All types are plain values. The package is pure: no client, no clock, no state.
package clusterset
