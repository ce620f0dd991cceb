// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"context"
	"fmt"
	"strings"
)

// UseThis has what follows done with the programs and files of this version.
func (c *Clusterset) UseThis() { c.programs = c.this }

// UseBefore has what follows done with the programs and files of the earlier version.
func (c *Clusterset) UseBefore() { c.programs = c.before }

// Upgrade brings a member to the version that is in use, as docs/operations.md says, and returns when all its pods are of this version.
// Flags are added to those of the command; an installation without it has none.
func (c *Clusterset) Upgrade(ctx context.Context, name string, flags ...string) error {
	how := c.Options.Installation(name)
	c.sayf("cluster %s: upgrade by %s", name, how.Installer)
	agent, dns := c.programs.image(AgentImage), c.programs.image(DNSImage)
	var err error
	switch how.Installer {
	case ByCommand:
		args := []string{"clusterset", "upgrade", "--context", name, "--agent-image", agent, "--dns-image", dns, "--gateway-image", c.programs.image(GatewayImage)}
		_, err = c.Kubectl(ctx, "", append(args, flags...)...)
	case ByHelm:
		err = c.helm(ctx, "--kube-context", name, "upgrade", "tombolo", "charts/tombolo", "--namespace", "tombolo-system",
			"--reset-then-reuse-values", "--set", "agent.image="+agent, "--set", "dns.image="+dns)
	default:
		return fmt.Errorf("cluster %s: no story upgrades what %s has installed", name, how.Installer)
	}
	if err != nil {
		return err
	}
	at := []string{"--context", name, "-n", "tombolo-system"}
	all, err := c.Kubectl(ctx, "", append(at, "get", "deployments", "-o", "name")...)
	if err != nil {
		return err
	}
	for _, deployment := range strings.Fields(all) {
		if _, err := c.Kubectl(ctx, "", append(at, "rollout", "status", deployment, "--timeout=180s")...); err != nil {
			return err
		}
	}
	return nil
}
