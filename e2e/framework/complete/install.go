// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// InstallHub brings the hub to the version that is in use: each installer of a hub upgrades a hub as well.
func (c *Clusterset) InstallHub(ctx context.Context) error {
	installer := c.Options.Installation(HubName).Installer
	c.sayf("hub: install or upgrade by %s", installer)
	var err error
	switch installer {
	case ByKustomize:
		_, err = c.Kubectl(ctx, "", "--context", c.Hub.Name, "apply", "-k", "manifests/hub")
	case ByHelm:
		err = c.helm(ctx, "--kube-context", c.Hub.Name, "upgrade", "--install", "tombolo-hub", "charts/tombolo-hub")
	default:
		_, err = c.Kubectl(ctx, "", "clusterset", "init-hub", "--context", c.Hub.Name)
	}
	return err
}

// Join makes a running cluster a member, or changes one, and returns when the hub has its heartbeat and its DNS serves the clusterset.
// Flags are added to those of the command; an installation without it has none.
func (c *Clusterset) Join(ctx context.Context, name string, flags ...string) error {
	how := c.Options.Installation(name)
	c.sayf("cluster %s: join by %s, names served by plugin %s", name, how.Installer, how.DNS)
	cluster := c.Cluster(name)
	var err error
	switch how.Installer {
	case ByKustomize:
		err = c.joinByKustomize(ctx, cluster)
	case ByHelm:
		err = c.joinByHelm(ctx, cluster)
	case ByInvitation:
		err = c.joinByInvitation(ctx, cluster, how.DNS)
	case ByCommand:
		err = c.joinByCommand(ctx, cluster, how.DNS, flags)
	}
	if err != nil {
		return err
	}
	return c.AwaitDNS(ctx, cluster)
}

// Leave takes a member out of the clusterset, as docs/install.md says.
func (c *Clusterset) Leave(ctx context.Context, name string) error {
	_, err := c.Kubectl(ctx, "", "clusterset", "leave", "--context", name, "--hub-context", c.Hub.Name, "--yes")
	return err
}

// Uninstall deletes what Helm or a kustomization has installed in a member, which remains one.
func (c *Clusterset) Uninstall(ctx context.Context, name string) error {
	if c.Options.Installation(name).Installer == ByHelm {
		return c.helm(ctx, "--kube-context", name, "uninstall", "tombolo", "--namespace", "tombolo-system", "--wait")
	}
	_, err := c.Kubectl(ctx, "", "--context", name, "delete", "-k", "manifests/agent")
	return err
}

func (c *Clusterset) joinByCommand(ctx context.Context, cluster *lab.Cluster, plugin DNS, flags []string) error {
	join := append(c.joining(cluster, plugin), "--hub-context", c.Hub.Name, "--cluster-id", cluster.Name, "--pod-cidrs", lab.Joined(cluster.PodCIDRs()))
	join = append(join, c.serviceCIDRs(cluster)...)
	if len(c.Options.Networks) > 0 {
		join = append(join, "--network", cmp.Or(c.Options.Networks[cluster.Name], hubv1alpha1.DefaultNetwork),
			"--gateway", "--gateway-image", c.gatewayImage(cluster.Name), "--gateway-service", "NodePort")
	}
	if _, err := c.Kubectl(ctx, "", append(join, flags...)...); err != nil {
		return err
	}
	return c.serveNames(ctx, cluster, plugin)
}

// gatewayImage returns the image of the gateways of a cluster.
func (c *Clusterset) gatewayImage(cluster string) string {
	if cluster == c.Options.EarlierGateways {
		return c.before.image(GatewayImage)
	}
	return c.programs.image(GatewayImage)
}

// joining returns the command that joins a cluster, and the flags about what runs there.
func (c *Clusterset) joining(cluster *lab.Cluster, plugin DNS) []string {
	parts := "quickstart"
	if plugin == CoreDNSPlugin {
		parts = "agent"
	}
	return []string{"clusterset", "join", "--context", cluster.Name, "--profile", parts, "--agent-image", c.programs.image(AgentImage), "--dns-image", c.programs.image(DNSImage)}
}

// serviceCIDRs returns the flag with the ranges of a cluster's Services, which "join" or "invite" needs if the cluster does not have them as
// objects.
func (c *Clusterset) serviceCIDRs(cluster *lab.Cluster) []string {
	if c.hasServiceCIDRs(cluster) {
		return nil
	}
	return []string{"--service-cidrs", lab.Joined(cluster.ServiceCIDRs)}
}

func (c *Clusterset) serveNames(ctx context.Context, cluster *lab.Cluster, plugin DNS) error {
	by := "tombolo"
	if plugin == CoreDNSPlugin {
		by = "kubernetes"
	}
	_, err := c.Kubectl(ctx, "", "clusterset", "dns", "--context", cluster.Name, "--by", by)
	return err
}

// joinByInvitation does what docs/install.md says: the hub's administrator invites the cluster, and the cluster's own joins it.
func (c *Clusterset) joinByInvitation(ctx context.Context, cluster *lab.Cluster, plugin DNS) error {
	folder, err := os.MkdirTemp(c.Folder(), "invitation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, cluster.Name+".yaml")
	invite := []string{"clusterset", "invite", "--context", c.Hub.Name, "--cluster-id", cluster.Name, "--pod-cidrs", lab.Joined(cluster.PodCIDRs()), "-o", file}
	if _, err := c.Kubectl(ctx, "", append(invite, c.serviceCIDRs(cluster)...)...); err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, "", append(c.joining(cluster, plugin), "--invite", file)...); err != nil {
		return err
	}
	return c.serveNames(ctx, cluster, plugin)
}

// hasServiceCIDRs reports whether a cluster has the ranges of its Services as objects, as Kubernetes does from 1.33 on.
func (c *Clusterset) hasServiceCIDRs(cluster *lab.Cluster) bool {
	return cluster.Name != c.Options.Oldest
}
