// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the kinds that the agent and the gateways of one cluster exchange, in the namespace of the agent. The agent
// writes RemoteGateways, each gateway its own GatewayStatus.
//
// +kubebuilder:object:generate=true
// +groupName=gateway.tombolo-mcs.io
package v1alpha1
