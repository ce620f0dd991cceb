// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// joinByHelm does what docs/install.md says under "By Helm": the member is defined on the hub by kustomize.
func (c *Clusterset) joinByHelm(ctx context.Context, cluster *lab.Cluster) error {
	_, remove, err := c.writeKustomizations(ctx, cluster)
	if err != nil {
		return err
	}
	defer remove()
	args := []string{
		"--kube-context", cluster.Name, "upgrade", "--install", "tombolo", "charts/tombolo", "--namespace", "tombolo-system", "--create-namespace",
		"--set", "clusterID=" + cluster.Name, "--set", "agent.image=" + c.programs.image(AgentImage), "--set", "dns.image=" + c.programs.image(DNSImage),
	}
	if !c.hasServiceCIDRs(cluster) {
		args = append(args, "--set-literal", "agent.args[0]=--service-cidrs="+lab.Joined(cluster.ServiceCIDRs))
	}
	if err := c.helm(ctx, args...); err != nil {
		return err
	}
	if err := c.connect(ctx, cluster); err != nil {
		return err
	}
	return c.serveNames(ctx, cluster, OurPlugin)
}

// helm runs Helm with all contexts of the clusterset, in the root of the repository.
func (c *Clusterset) helm(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(c.programs.clusterset), "helm"), args...)
	cmd.Dir = c.programs.root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "HOME="+c.Folder())
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return fmt.Errorf("helm %s: %w:\n%s", strings.Join(args, " "), err, out)
	}
	return err
}
