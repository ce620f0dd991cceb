// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// containerdConfig tolerates what the hosts of labs often lack: AppArmor, and a root user that may lower the OOM score.
const containerdConfig = `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.internal.v1.opt"]

[grpc]
  address = "` + containerdSocket + `"

[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "` + pauseImage + `"

[plugins.'io.containerd.cri.v1.runtime']
  disable_apparmor = true
  restrict_oom_score_adj = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = [%[1]q]
  conf_dir = %[2]q

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  runtime_path = %[3]q

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = %[4]q
  SystemdCgroup = false
`

// cniConfig makes a bridge for the pods. Nothing is masqueraded: between clusters pods see each other's addresses.
const cniConfig = `{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "cni0",
      "isGateway": true,
      "hairpinMode": true,
      "ipMasq": false,
      "ipam": {
        "type": "host-local",
        "ranges": [%[1]s],
        "routes": [%[2]s]
      }
    }
  ]
}
`

// kubeletConfig works on hosts with either version of cgroups, without systemd, with swap and a full disk.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /%[1]s
cgroupsPerQOS: false
enforceNodeAllocatable: []
containerRuntimeEndpoint: unix://` + containerdSocket + `
clusterDNS: [%[2]s]
clusterDomain: cluster.local
evictionHard: {memory.available: 1Mi, nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%", imagefs.inodesFree: "0%%"}
imageGCHighThresholdPercent: 100
failSwapOn: false
localStorageCapacityIsolation: false
registerWithTaints: []
resolvConf: %[3]s
serializeImagePulls: false
syncFrequency: 10s
logging: {verbosity: 1}
%[4]s`

// proxyConfig leaves the host's limits of connection tracking alone, which a machine may not change.
const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: %[4]s
clientConnection: {kubeconfig: %[1]s}
clusterCIDR: %[2]s
hostnameOverride: %[3]s
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`

// pauseImage is the image of every pod's sandbox.
const pauseImage = "tombolo.example/pause:lab"

// writeConfigs writes the files that the node's programs read at their start.
func (n *Node) writeConfigs() error {
	c := n.cluster
	for _, component := range []string{"kube-scheduler", "kubelet", "kube-proxy"} {
		if _, err := c.componentKubeconfig(component); err != nil {
			return err
		}
	}
	pods := c.PodCIDRs()
	var ranges, routes []string
	for i, cidr := range pods {
		ranges = append(ranges, fmt.Sprintf(`[{"subnet": %q}]`, cidr))
		routes = append(routes, fmt.Sprintf(`{"dst": %q}`, families[i].everywhere))
	}
	// kube-proxy programs the kernel with nftables, which was not for use before 1.31; and some releases refuse what others need.
	proxyMode, kubeletExtra := "nftables", "failCgroupV1: false\n"
	if c.binaries.release != "" {
		proxyMode, kubeletExtra = "iptables", ""
	}
	resolvConf := "nameserver 127.0.0.1\n" // what pods with dnsPolicy Default get: nothing that answers
	for name, content := range map[string]string{
		"10-pods.conflist": fmt.Sprintf(cniConfig, strings.Join(ranges, ", "), strings.Join(routes, ", ")),
		"containerd.toml":  fmt.Sprintf(containerdConfig, c.binaries.cniPlugins, c.folder, c.binaries.shim, c.binaries.runc),
		"kubelet.yaml":     fmt.Sprintf(kubeletConfig, c.machine.cgroup, c.DNSAddress(), n.path("resolv.conf"), kubeletExtra),
		"kube-proxy.yaml":  fmt.Sprintf(proxyConfig, c.kubeconfigOf("kube-proxy"), Joined(pods), c.Name, proxyMode),
		"resolv.conf":      resolvConf,
	} {
		if err := os.WriteFile(n.path(name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) kubeconfigOf(component string) string {
	return filepath.Join(c.folder, component+".kubeconfig")
}

// Joined returns CIDRs or addresses as the flags of commands take them, comma-separated.
func Joined[T fmt.Stringer](values []T) string {
	all := make([]string, len(values))
	for i, value := range values {
		all[i] = value.String()
	}
	return strings.Join(all, ",")
}
