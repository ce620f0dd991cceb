// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterset holds the nouns of a clusterset: who exports (ClusterID), what is exported
// (ServiceKey, Export, Port), where its traffic goes (Slice, Endpoint, AddressRanges), and the names, labels and
// annotations by which clusters recognise each other's objects.
//
// Everything here is a value. Nothing here talks to a cluster, reads a clock or keeps state.
package clusterset
