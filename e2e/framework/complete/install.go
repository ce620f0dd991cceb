// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

func (c *Clusterset) installHub(ctx context.Context) error {
	installer := c.Options.Installation(HubName).Installer
	c.sayf("hub: install by %s", installer)
	if installer == ByCommand {
		_, err := c.Kubectl(ctx, "", "clusterset", "init-hub", "--context", c.Hub.Name)
		return err
	}
	_, err := c.Kubectl(ctx, "", "--context", c.Hub.Name, "apply", "-k", "manifests/hub")
	return err
}

// Join makes a running cluster a member, or changes one, and returns when the hub has its heartbeat and its DNS serves the clusterset.
// Flags are added to those of the command; an installation by kustomize has none.
func (c *Clusterset) Join(ctx context.Context, name string, flags ...string) error {
	how := c.Options.Installation(name)
	c.sayf("cluster %s: join by %s, names served by plugin %s", name, how.Installer, how.DNS)
	cluster := c.Cluster(name)
	var err error
	if how.Installer == ByCommand {
		err = c.joinByCommand(ctx, cluster, how.DNS, flags)
	} else {
		err = c.joinByKustomize(ctx, cluster)
	}
	if err != nil {
		return err
	}
	return c.awaitDNS(ctx, cluster)
}

// Leave takes a member out of the clusterset, as docs/install.md says.
func (c *Clusterset) Leave(ctx context.Context, name string) error {
	_, err := c.Kubectl(ctx, "", "clusterset", "leave", "--context", name, "--hub-context", c.Hub.Name, "--yes")
	return err
}

func (c *Clusterset) joinByCommand(ctx context.Context, cluster *lab.Cluster, plugin DNS, flags []string) error {
	parts, by := "quickstart", "tombolo"
	if plugin == CoreDNSPlugin {
		parts, by = "agent", "kubernetes"
	}
	join := []string{
		"clusterset", "join", "--context", cluster.Name, "--hub-context", c.Hub.Name,
		"--cluster-id", cluster.Name, "--pod-cidrs", Joined(cluster.PodCIDRs()),
		"--profile", parts, "--agent-image", AgentImage, "--dns-image", DNSImage,
	}
	if len(c.Options.Networks) > 0 {
		join = append(join, "--network", cmp.Or(c.Options.Networks[cluster.Name], hubv1alpha1.DefaultNetwork),
			"--gateway", "--gateway-image", GatewayImage, "--gateway-service", "NodePort")
	}
	if !c.hasServiceCIDRs(cluster) {
		join = append(join, "--service-cidrs", Joined(cluster.ServiceCIDRs))
	}
	if _, err := c.Kubectl(ctx, "", append(join, flags...)...); err != nil {
		return err
	}
	_, err := c.Kubectl(ctx, "", "clusterset", "dns", "--context", cluster.Name, "--by", by)
	return err
}

// hasServiceCIDRs reports whether a cluster has the ranges of its Services as objects, as Kubernetes does from 1.33 on.
func (c *Clusterset) hasServiceCIDRs(cluster *lab.Cluster) bool {
	return cluster.Name != c.Options.Oldest
}

// joinByKustomize does what docs/install.md says under "By kustomize alone", with CoreDNS' own plugin.
func (c *Clusterset) joinByKustomize(ctx context.Context, cluster *lab.Cluster) error {
	// The kustomizations of a user's own lie within the repository: kustomize takes relative paths only.
	out := filepath.Join(c.programs.root, "out")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(out, "kustomize-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	for path, content := range c.kustomizations(cluster) {
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	name, hub := cluster.Name, c.Hub.Name
	if err := c.admitByKustomize(ctx, folder+"/hub", "member-"+name); err != nil {
		return err
	}
	for _, step := range []struct{ stdin, args string }{
		{args: "--context " + name + " apply -k manifests/crd/mcs"},
		{args: "--context " + name + " apply -f manifests/crd/about.k8s.io_clusterproperties.yaml"},
		{args: "--context " + name + " wait --for=condition=Established crd/clusterproperties.about.k8s.io --timeout=60s"},
		{stdin: fmt.Sprintf(properties, name), args: "--context " + name + " apply -f -"},
		{args: "--context " + name + " apply -k " + folder + "/member"},
	} {
		if _, err := c.Kubectl(ctx, step.stdin, words(step.args)...); err != nil {
			return err
		}
	}
	if err := c.giveCredentials(ctx, cluster); err != nil {
		return err
	}
	_, err = c.Kubectl(ctx, "", "--context", hub, "-n", "member-"+name, "wait", "--for=create", "heartbeat/heartbeat", "--timeout=120s")
	if err != nil {
		return err
	}
	return c.editCorefile(ctx, cluster)
}

// quotaAttempts bounds how often a quota is made anew: ten times the 30 s in which the hub's controllers notice new kinds.
const quotaAttempts = 30

// admitByKustomize applies a member's kustomization to the hub and returns when its quota counts: one that is older than
// what the hub's controllers know is made anew, as manifests/member/resourcequota.yaml says.
func (c *Clusterset) admitByKustomize(ctx context.Context, folder, namespace string) error {
	hub := "--context " + c.Hub.Name
	counts := `{.status.used.count/publishedendpoints\.hub\.tombolo-mcs\.io}`
	var err error
	for range quotaAttempts {
		if _, err = c.Kubectl(ctx, "", words(hub+" apply -k "+folder)...); err != nil {
			return err
		}
		wait := "wait --for=jsonpath=" + counts + " resourcequota/tombolo --timeout=10s"
		if _, err = c.Kubectl(ctx, "", words(hub+" -n "+namespace+" "+wait)...); err == nil {
			return nil
		}
		if _, err := c.Kubectl(ctx, "", words(hub+" -n "+namespace+" delete resourcequota tombolo")...); err != nil {
			return err
		}
	}
	return fmt.Errorf("the quota of %s does not count: %w", namespace, err)
}

const properties = `apiVersion: about.k8s.io/v1beta1
kind: ClusterProperty
metadata: {name: cluster.clusterset.k8s.io, labels: {app.kubernetes.io/part-of: tombolo}}
spec: {value: %[1]s}
---
apiVersion: about.k8s.io/v1beta1
kind: ClusterProperty
metadata: {name: clusterset.k8s.io, labels: {app.kubernetes.io/part-of: tombolo}}
spec: {value: clusterset}
`
