// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stories contains only tests: what users of Tombolo do, on complete clusters with pods, kube-proxy and traffic
// ("make e2e"). Each story is a function that reads from top to bottom and runs in a namespace of its own: see
// stories_test.go for the list. The clusters are those of package complete.
//
// Clients never retry: a request that fails is a failed request. The stories wait only for what a user would wait for, such
// as a pod that starts or an export that becomes ready.
package stories
