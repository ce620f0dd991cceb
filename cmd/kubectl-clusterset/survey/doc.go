// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package survey looks at a clusterset from outside, as an administrator who can reach its hub and some or all of its
// members. It changes nothing. The data flow:
//
//	Find         asks API servers who they are, and reads the hub
//	Member.Look  reads a member, of one namespace or all, through the caches that its agent would have
//	Look.Rehearse runs the agent's own controllers on one service, against an API server that only judges their writes
//	Trace        follows one service from its Service to its DNS answer, and says where it ends
//
// So what is said about a cluster is what its agent would say and do, by the same code.
package survey
