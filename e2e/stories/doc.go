// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stories has no code but tests: what users of Tombolo live through, on complete clusters with pods, kube-proxy and
// traffic ("make e2e"). Each story is a function that reads from top to bottom. It runs in a namespace of its own, in each
// variant of the clusterset (package complete): see stories_test.go for the list.
//
// Clients never try again: a request that fails is a failed request. Only what a person would wait for, such as a pod
// that starts or an export that becomes ready, is waited for.
package stories
