// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// InstallAgent applies the agent's manifests to a member and returns the credentials that its pods would have there: an
// agent that a test or the demo runs as a process has no more rights than a released one.
func InstallAgent(ctx context.Context, cluster *lab.Cluster) (*rest.Config, error) {
	objects, err := manifests.Render("agent")
	if err != nil {
		return nil, err
	}
	if err := apply(ctx, cluster, objects...); err != nil {
		return nil, fmt.Errorf("install the agent in %s: %w", cluster.Name, err)
	}
	return cluster.ServiceAccountConfig(ctx, manifests.AgentNamespace, manifests.AgentServiceAccount)
}

// InstallGateway applies the manifests of the gateways to a member that has those of the agent.
func InstallGateway(ctx context.Context, cluster *lab.Cluster) error {
	objects, err := manifests.Render("gateway")
	if err != nil {
		return err
	}
	return apply(ctx, cluster, objects...)
}
