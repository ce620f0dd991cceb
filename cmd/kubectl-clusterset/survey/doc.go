// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package survey reads a clusterset from outside, for an administrator who can reach its hub and some or all of its members.
// It changes nothing. The data flow:
//
//	Find               identifies API servers, and reads the hub
//	Member.Read        reads one or all namespaces of a member, through the caches that its agent uses
//	MemberView.DryRun  runs the controllers of the agent for one service, with dry-run requests
//	Watch              reads it again after each change, from caches
//	Trace              follows one service from its Service to its DNS answer, and reports where it is broken
//
// It runs the code of the agent, so its results are those of the agent.
package survey
