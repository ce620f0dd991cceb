// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package survey reads a clusterset from outside, for an administrator who can reach its hub and some or all of its members.
// It changes nothing. The data flow, through this package and the packages below it:
//
//	Find, ReadObjects             observe: identify API servers, read the hub, list the objects of the members
//	assess.Assess                 judges what was observed, without a client or a clock: a Status with problems and next steps
//	explain.Service, CanConnect   describe one service: how its exports are merged, and who may use it
//	watch.Run                     observes and judges again after each change, from caches
//	dryrun.Read, View.Service     run the controllers of the agent of one member for one service, with dry-run requests
//	trace.Run                     follows one service from its Service to its DNS answer, and reports where it is broken
//
// It runs the code of the agent, so its results are those of the agent. The packages share apiserver (requests with time limits, and the
// explanation of failures), memberdns (what the DNS of a member does with the names of the clusterset) and phrase (parts of messages).
package survey
