// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reach says how the pods of one cluster reach those of another.
//
//   - path, slices, headless: by the addresses of the endpoints, or through gateways, and then with which slices. Pure.
//   - addresses, remote: at which addresses the gateways of this cluster are published, and which gateways of other members those of this
//     cluster know (G4). Pure.
//   - Reach: which gateways of this cluster answer, which other clusters each of them reaches, and on which ports it listens (G8). It keeps the
//     last reports.
package reach
