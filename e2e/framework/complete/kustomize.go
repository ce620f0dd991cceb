// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"context"
	"fmt"
	"net/netip"
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
		patches = fmt.Sprintf(serviceCIDRsPatch, Joined(cluster.ServiceCIDRs))
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
- {name: ghcr.io/tombolo-mcs/tombolo-agent, newName: localhost/tombolo-agent, newTag: lab}
%s`, patches),
	}
}

// serviceCIDRsPatch is the patch for an agent whose cluster has no ServiceCIDR objects.
const serviceCIDRsPatch = `patches:
- target: {kind: Deployment, name: tombolo-agent}
  patch: '[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--service-cidrs=%s"}]'
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
	_, err = c.Kubectl(ctx, secret, "--context", cluster.Name, "create", "-f", "-")
	return err
}

// editCorefile does what manifests/dns/corefile/README.md says.
func (c *Clusterset) editCorefile(ctx context.Context, cluster *lab.Cluster) error {
	get := []string{"--context", cluster.Name, "-n", "kube-system", "get", "configmap", "coredns", "-o", "jsonpath={.data.Corefile}"}
	before, err := c.Kubectl(ctx, "", get...)
	if err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, "", "--context", cluster.Name, "apply", "-k", "manifests/dns/corefile"); err != nil {
		return err
	}
	after := strings.Replace(before, "ip6.arpa {\n", "ip6.arpa clusterset.local {\n        multicluster clusterset.local\n", 1)
	patch := fmt.Sprintf(`{"data":{"Corefile":%q}}`, after)
	_, err = c.Kubectl(ctx, "", "--context", cluster.Name, "-n", "kube-system", "patch", "configmap", "coredns", "--type=merge", "-p", patch)
	return err
}

// Joined returns CIDRs as the flags of commands take them, comma-separated.
func Joined(cidrs []netip.Prefix) string {
	all := make([]string, len(cidrs))
	for i, cidr := range cidrs {
		all[i] = cidr.String()
	}
	return strings.Join(all, ",")
}

func quoted(cidrs []netip.Prefix) string {
	return `"` + strings.ReplaceAll(Joined(cidrs), ",", `","`) + `"`
}

func words(command string) []string { return strings.Fields(command) }
