// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// containerdSocket is where programs on a machine find its containerd.
const containerdSocket = "/run/containerd/containerd.sock"

// Node is the one node of a complete cluster, and the scheduler. It has the cluster's name.
type Node struct {
	Scheduler  *Process
	Containerd *Process
	Kubelet    *Process
	Proxy      *Process

	cluster *Cluster
	network *network
}

// PodCIDRs returns the addresses of the cluster's pods, IPv4, and IPv6 if it has that: 10.<200+i>.0.0/24 and fd00:20:<i>::/64
// for cluster i of its network. Nil if it has no node.
func (c *Cluster) PodCIDRs() []netip.Prefix {
	if c.options.Form != Complete {
		return nil
	}
	return []netip.Prefix{
		netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/24", 200+c.number)),
		netip.MustParsePrefix(fmt.Sprintf("fd00:20:%d::/64", c.number)),
	}[:len(c.ServiceCIDRs)]
}

// MachineAddresses returns the addresses of the cluster's machine, IPv4, and IPv6 if the cluster has it. Nil if it has no machine.
func (c *Cluster) MachineAddresses() []netip.Addr {
	if c.machine == nil {
		return nil
	}
	return slices.Clone(c.machine.addresses)
}

// DNSAddress returns the address in the primary service CIDR that the node's pods ask DNS at: Service kube-system/kube-dns
// has to have it. It is the tenth, as kubeadm has it.
func (c *Cluster) DNSAddress() netip.Addr {
	a := c.ServiceCIDRs[0].Addr()
	for range 10 {
		a = a.Next()
	}
	return a
}

func (n *Node) processes() []*Process {
	return []*Process{n.Scheduler, n.Containerd, n.Kubelet, n.Proxy}
}

// start returns when the node is ready to run pods. The scheduler starts meanwhile.
func (n *Node) start(ctx context.Context) error {
	c := n.cluster
	if err := n.writeConfigs(); err != nil {
		return err
	}
	always := func(context.Context) error { return nil }
	n.Scheduler = c.process("kube-scheduler", always, c.binaries.scheduler,
		"--kubeconfig="+c.kubeconfigOf("kube-scheduler"), "--leader-elect=false")
	containerdReady := func(ctx context.Context) error { _, err := n.ctr(ctx, "version"); return err }
	n.Containerd = c.process("containerd", containerdReady, c.binaries.containerd, "--config", n.path("containerd.toml"))
	n.Proxy = c.process("kube-proxy", always, c.binaries.proxy, "--config="+n.path("kube-proxy.yaml"))
	n.Kubelet = c.process("kubelet", n.ready, c.binaries.kubelet,
		"--config="+n.path("kubelet.yaml"),
		"--kubeconfig="+c.kubeconfigOf("kubelet"),
		"--hostname-override="+c.Name,
		"--node-ip="+Joined(c.machine.addresses),
	)
	for _, p := range []*Process{n.Scheduler, n.Containerd} {
		if err := p.Start(ctx); err != nil {
			return err
		}
	}
	if err := n.LoadImages(ctx, c.binaries.pauseImage); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	// A kubelet without a Node, and a kube-proxy whose Node has no address, ask again after up to 20 seconds.
	if _, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.Name}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, p := range []*Process{n.Kubelet, n.Proxy} {
		if err := p.Start(ctx); err != nil {
			return err
		}
	}
	return n.settle(ctx, client)
}

// settle puts the node into its zone once kube-proxy works. If the node had the zone from the start, a kube-proxy of 1.36
// could miss it for good: it begins to listen to the node before it knows what to do with the node's zone.
func (n *Node) settle(ctx context.Context, client *kubernetes.Clientset) error {
	if err := Await(ctx, readyInterval, startTimeout, n.proxyReady); err != nil {
		return fmt.Errorf("waiting for kube-proxy: %w", err)
	}
	zone := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"zone-%s"}}}`, corev1.LabelTopologyZone, n.cluster.Name)
	_, err := client.CoreV1().Nodes().Patch(ctx, n.cluster.Name, types.StrategicMergePatchType, zone, metav1.PatchOptions{})
	return err
}

// proxyHealthPort is the port of kube-proxy's health check.
const proxyHealthPort = 10256

// proxyReady returns nil once kube-proxy has programmed the kernel.
func (n *Node) proxyReady(ctx context.Context) error {
	where := url.URL{Scheme: "http", Host: netip.AddrPortFrom(n.cluster.machine.addresses[0], proxyHealthPort).String(), Path: "/healthz"}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), http.NoBody)
	if err != nil {
		return err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var health struct{ LastUpdated string }
	if err := json.NewDecoder(response.Body).Decode(&health); err != nil {
		return fmt.Errorf("what kube-proxy says of its health: %w", err)
	}
	if never := (time.Time{}).Format("2006"); strings.HasPrefix(health.LastUpdated, never) {
		return errors.New("kube-proxy has not programmed the kernel yet")
	}
	return nil
}

func (n *Node) path(file string) string { return filepath.Join(n.cluster.folder, file) }

func (n *Node) ctr(ctx context.Context, args ...string) ([]byte, error) {
	argv := append([]string{n.cluster.binaries.ctr, "--address", containerdSocket, "--namespace", "k8s.io"}, args...)
	return n.cluster.machine.run(ctx, argv...)
}

// LoadImages makes the images of archives, as files of the OCI or Docker format, known to the node under their names.
func (n *Node) LoadImages(ctx context.Context, archives ...string) error {
	for _, archive := range archives {
		if _, err := n.ctr(ctx, "images", "import", "--local", archive); err != nil {
			return fmt.Errorf("loading an image into the node of cluster %s: %w", n.cluster.Name, err)
		}
	}
	return nil
}

// ready reports whether the API server has the node as ready.
func (n *Node) ready(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(n.cluster.Config())
	if err != nil {
		return err
	}
	node, err := client.CoreV1().Nodes().Get(ctx, n.cluster.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			if condition.Status == corev1.ConditionTrue {
				return nil
			}
			return errors.New(condition.Message)
		}
	}
	return errors.New("the node has no condition Ready yet")
}

// Freeze stops the node and its control plane, as when the machine loses power: packets to it are lost, and every
// process on it halts. Nothing on it notices but the time that passes.
func (n *Node) Freeze(ctx context.Context) error {
	err := n.network.plug(ctx, n.cluster.index, "nomaster")
	if err == nil {
		err = n.cluster.machine.freeze(ctx)
	}
	if err != nil {
		return fmt.Errorf("freezing the node of cluster %s: %w", n.cluster.Name, err)
	}
	return nil
}

// Thaw undoes Freeze. It returns when the API server answers again: for a moment after the node is back, its neighbours may still
// hold it for unreachable.
func (n *Node) Thaw(ctx context.Context) error {
	err := n.cluster.machine.thaw()
	if err == nil {
		err = n.network.plug(ctx, n.cluster.index, "master", "wan")
	}
	if err == nil {
		err = n.cluster.APIServer.settled(ctx)
	}
	if err != nil {
		return fmt.Errorf("thawing the node of cluster %s: %w", n.cluster.Name, err)
	}
	return nil
}

// KillContainer ends the first process of a container of a running pod with SIGKILL, from outside the pod, as the
// kernel does when memory is short. It returns when the kubelet has the request, not when it has acted.
func (n *Node) KillContainer(ctx context.Context, pod types.NamespacedName, container string) error {
	client, err := kubernetes.NewForConfig(n.cluster.Config())
	if err != nil {
		return err
	}
	p, err := client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("killing container %s of %s: %w", container, pod, err)
	}
	for _, status := range p.Status.ContainerStatuses {
		if status.Name == container {
			id := strings.TrimPrefix(status.ContainerID, "containerd://")
			_, err := n.ctr(ctx, "task", "kill", "--signal", "SIGKILL", id)
			return err
		}
	}
	return fmt.Errorf("killing container %s of %s: the pod has none of that name", container, pod)
}

// freeze halts all processes of the machine, those too that others begin meanwhile.
func (m *machine) freeze(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, readyInterval, true, func(ctx context.Context) (bool, error) {
		pids, err := m.processes()
		if err != nil {
			return false, err
		}
		all := true
		for _, pid := range pids {
			halted, err := halt(ctx, pid)
			if err != nil {
				return false, err
			}
			all = all && halted
		}
		return all, nil
	})
}
