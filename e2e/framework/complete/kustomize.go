// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// kustomizations returns the files that a user writes for a member.
func (c *Clusterset) kustomizations(cluster *lab.Cluster) map[string]string {
	var nodes []netip.Prefix
	for _, a := range cluster.MachineAddresses() {
		nodes = append(nodes, netip.PrefixFrom(a, a.BitLen()))
	}
	patches := ""
	if !c.hasServiceCIDRs(cluster) {
		patches = fmt.Sprintf(serviceCIDRsPatch, lab.Joined(cluster.ServiceCIDRs))
	}
	return map[string]string{
		"hub/kustomization.yaml": `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [member.yaml]
components: [../../../manifests/member]
`,
		"hub/member.yaml": fmt.Sprintf(`apiVersion: hub.tombolo-mcs.io/v1alpha1
kind: Member
metadata: {name: member}
spec: {clusterID: %s, podCIDRs: [%s], nodeCIDRs: [%s]}
`, cluster.Name, quoted(cluster.PodCIDRs()), quoted(nodes)),
		"member/kustomization.yaml": fmt.Sprintf(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../../../manifests/agent]
images:
- {name: ghcr.io/tombolo-mcs/tombolo-agent, newName: %s, newTag: lab}
%s`, strings.TrimSuffix(c.programs.image(AgentImage), ":lab"), patches),
	}
}

// serviceCIDRsPatch is the patch for an agent whose cluster has no ServiceCIDR objects.
const serviceCIDRsPatch = `patches:
- target: {kind: Deployment, name: tombolo-agent}
  patch: '[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--service-cidrs=%s"}]'
`

// joinByKustomize does what docs/install.md says under "By kustomize alone", with CoreDNS' own plugin.
func (c *Clusterset) joinByKustomize(ctx context.Context, cluster *lab.Cluster) error {
	folder, remove, err := c.writeKustomizations(ctx, cluster)
	if err != nil {
		return err
	}
	defer remove()
	name := cluster.Name
	for _, step := range []struct{ stdin, args string }{
		{args: "--context " + name + " apply -k manifests/crd/mcs"},
		{args: "--context " + name + " apply -f manifests/crd/about.k8s.io_clusterproperties.yaml"},
		{args: "--context " + name + " wait --for=condition=Established crd/clusterproperties.about.k8s.io --timeout=60s"},
		{stdin: fmt.Sprintf(properties, name), args: "--context " + name + " apply -f -"},
		{args: "--context " + name + " apply -k " + folder + "/member"},
	} {
		if _, err := c.Kubectl(ctx, step.stdin, strings.Fields(step.args)...); err != nil {
			return err
		}
	}
	if err := c.connect(ctx, cluster); err != nil {
		return err
	}
	return c.editCorefile(ctx, cluster)
}

// connect gives a member's agent the credentials for the hub, and waits for its heartbeat.
func (c *Clusterset) connect(ctx context.Context, cluster *lab.Cluster) error {
	if err := c.giveCredentials(ctx, cluster); err != nil {
		return err
	}
	_, err := c.Kubectl(ctx, "", "--context", c.Hub.Name, "-n", "member-"+cluster.Name, "wait", "--for=create", "heartbeat/heartbeat", "--timeout=120s")
	return err
}

// writeKustomizations writes those of a member, and applies the one for the hub. They are in the folder that is returned until remove.
func (c *Clusterset) writeKustomizations(ctx context.Context, cluster *lab.Cluster) (folder string, remove func(), err error) {
	// The kustomizations of a user's own lie within the repository: kustomize takes relative paths only.
	out := filepath.Join(c.programs.root, "out")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", nil, err
	}
	folder, err = os.MkdirTemp(out, "kustomize-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(folder) }
	for path, content := range c.kustomizations(cluster) {
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			remove()
			return "", nil, err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			remove()
			return "", nil, err
		}
	}
	if err := c.admitByKustomize(ctx, folder+"/hub", "member-"+cluster.Name); err != nil {
		remove()
		return "", nil, err
	}
	return folder, remove, nil
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
		if _, err = c.Kubectl(ctx, "", strings.Fields(hub+" apply -k "+folder)...); err != nil {
			return err
		}
		wait := "wait --for=jsonpath=" + counts + " resourcequota/tombolo --timeout=10s"
		if _, err = c.Kubectl(ctx, "", strings.Fields(hub+" -n "+namespace+" "+wait)...); err == nil {
			return nil
		}
		if _, err := c.Kubectl(ctx, "", strings.Fields(hub+" -n "+namespace+" delete resourcequota tombolo")...); err != nil {
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

// giveCredentials gives a member's agent its way to the hub.
func (c *Clusterset) giveCredentials(ctx context.Context, cluster *lab.Cluster) error {
	token, err := c.Kubectl(ctx, "", "--context", c.Hub.Name, "-n", "member-"+cluster.Name, "create", "token", "tombolo-agent", "--duration=72h")
	if err != nil {
		return err
	}
	hub := c.Hub.Config()
	kubeconfig := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: hub, cluster: {server: %q, certificate-authority: ca.crt}}]
users: [{name: agent, user: {tokenFile: token}}]
contexts: [{name: hub, context: {cluster: hub, user: agent}}]
current-context: hub
`, hub.Host)
	secret := fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {namespace: tombolo-system, name: tombolo-hub}
stringData: {kubeconfig: %q, ca.crt: %q, token: %q}
`, kubeconfig, hub.CAData, strings.TrimSpace(token))
	_, err = c.Kubectl(ctx, secret, "--context", cluster.Name, "apply", "-f", "-") // an uninstallation leaves the former one
	return err
}

// forwardMark begins what "kubectl clusterset dns" adds to a Corefile.
const forwardMark = "# BEGIN tombolo forward"

// editCorefile does what manifests/dns/corefile/README.md says.
func (c *Clusterset) editCorefile(ctx context.Context, cluster *lab.Cluster) error {
	get := []string{"--context", cluster.Name, "-n", "kube-system", "get", "configmap", "coredns", "-o", "jsonpath={.data.Corefile}"}
	before, err := c.Kubectl(ctx, "", get...)
	if err != nil {
		return err
	}
	if strings.Contains(before, forwardMark) { // of an earlier installation
		if _, err := c.Kubectl(ctx, "", "clusterset", "dns", "--context", cluster.Name, "--by", "none"); err != nil {
			return err
		}
		if before, err = c.Kubectl(ctx, "", get...); err != nil {
			return err
		}
	}
	if _, err := c.Kubectl(ctx, "", "--context", cluster.Name, "apply", "-k", "manifests/dns/corefile"); err != nil {
		return err
	}
	after := strings.Replace(before, "ip6.arpa {\n", "ip6.arpa clusterset.local {\n        multicluster clusterset.local\n", 1)
	patch := fmt.Sprintf(`{"data":{"Corefile":%q}}`, after)
	_, err = c.Kubectl(ctx, "", "--context", cluster.Name, "-n", "kube-system", "patch", "configmap", "coredns", "--type=merge", "-p", patch)
	return err
}

func quoted(cidrs []netip.Prefix) string {
	return `"` + strings.ReplaceAll(lab.Joined(cidrs), ",", `","`) + `"`
}
