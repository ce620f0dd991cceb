// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package complete joins complete clusters of package lab, with nodes and pods, to a clusterset, and installs Tombolo as a
// user does: by images loaded into the nodes and either "kubectl clusterset" or kustomize alone. What the stories of
// e2e/stories and "make lab-up" stand on. Linux and root.
package complete
