// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package checknetwork

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/workload"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/writing"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const (
	// listeningPod echoes the data that it receives at networkPort. reachingPod sends data to it.
	listeningPod = "tombolo-check-network-listen"
	reachingPod  = "tombolo-check-network-reach"
	networkPort  = "8082"
)

// networkPods are the pods of a check-network.
type networkPods struct {
	check    *command
	clusters []*podCluster
}

// podCluster is a cluster in which pods are started.
type podCluster struct {
	member  *survey.Member
	install install.Installer
	image   string
}

// listener is a pod that echoes data.
type listener struct {
	id        clusterset.ClusterID
	addresses []netip.Addr
}

// add starts the listening pod of a cluster.
func (p *networkPods) add(ctx context.Context, m *survey.Member) error {
	target := &podCluster{member: m, install: install.New(m.Client).Force(), image: p.check.imageFor(m)}
	if target.image == "" {
		return output.Usage(fmt.Errorf("%s has no agent whose image could be used: pass --agent-image", m.ID))
	}
	p.clusters = append(p.clusters, target)
	return target.start(ctx, p.check, listeningPod, "--check-network-listen=:"+networkPort)
}

// imageFor returns the image of the pods of a cluster: from the flags, else that of its agent, else the release's.
func (n *command) imageFor(m *survey.Member) string {
	if n.image != "" {
		return n.image
	}
	registry, running := strings.TrimSuffix(n.imageRegistry, "/"), ""
	if m.Agent != nil {
		running = workload.ImageIn(m.Agent)
	}
	if running != "" && registry != "" {
		running = workload.Mirrored(running, registry, manifests.AgentImageName)
	}
	return cmp.Or(running, n.build.ImageFrom(registry, manifests.AgentImageName))
}

// start replaces a pod: the result of a pod of an interrupted run is outdated.
func (p *podCluster) start(ctx context.Context, check *command, name string, args ...string) error {
	pod, err := workload.NewCheckPod(manifests.AgentNamespace, name, p.image, 3*check.timeout, args)
	if err != nil {
		return err
	}
	if err := p.remove(ctx, name); err != nil {
		return err
	}
	if err := writing.AwaitDeleted(ctx, &connection.Cluster{What: "cluster " + string(p.member.ID), Client: p.member.Client}, pod); err != nil {
		return err
	}
	if _, err := p.install.Apply(ctx, pod); err != nil {
		return fmt.Errorf("start pod %s in cluster %s: %w", name, p.member.ID, err)
	}
	return nil
}

func (p *podCluster) remove(ctx context.Context, name string) error {
	pod := &unstructured.Unstructured{}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	pod.SetNamespace(manifests.AgentNamespace)
	pod.SetName(name)
	if _, err := p.install.Delete(ctx, pod); err != nil {
		return fmt.Errorf("remove pod %s of cluster %s: %w", name, p.member.ID, err)
	}
	return nil
}

// remove deletes all pods that were started.
func (p *networkPods) remove(ctx context.Context) error {
	var errs []error
	for _, target := range p.clusters {
		errs = append(errs, target.remove(ctx, listeningPod), target.remove(ctx, reachingPod))
	}
	return errors.Join(errs...)
}

// listen waits until all listening pods run, and returns them.
func (p *networkPods) listen(ctx context.Context) ([]listener, error) {
	var result []listener
	for _, target := range p.clusters {
		pod, err := p.await(ctx, target, listeningPod, corev1.PodRunning)
		if err != nil {
			return nil, err
		}
		l := listener{id: target.member.ID}
		for _, ip := range pod.Status.PodIPs {
			address, err := netip.ParseAddr(ip.IP)
			if err != nil {
				return nil, fmt.Errorf("the address of pod %s of cluster %s: %w", listeningPod, l.id, err)
			}
			l.addresses = append(l.addresses, address)
		}
		p.check.r.Okf("%s: %v", l.id, l.addresses)
		result = append(result, l)
	}
	return result, nil
}

// reach runs a pod of one cluster that connects to pods of others. It returns an error text for each address, empty for
// success.
func (p *networkPods) reach(ctx context.Context, m *survey.Member, listeners []listener) (map[string]string, error) {
	target := p.find(m)
	var targets []string
	for _, l := range listeners {
		for _, address := range l.addresses {
			targets = append(targets, net.JoinHostPort(address.String(), networkPort))
		}
	}
	if err := target.start(ctx, p.check, reachingPod, "--check-network-reach="+strings.Join(targets, ",")); err != nil {
		return nil, err
	}
	if _, err := p.await(ctx, target, reachingPod, corev1.PodSucceeded); err != nil {
		return nil, err
	}
	set, err := kubernetes.NewForConfig(m.KubeContext.Config)
	if err != nil {
		return nil, err
	}
	log, err := set.CoreV1().Pods(manifests.AgentNamespace).GetLogs(reachingPod, &corev1.PodLogOptions{}).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("read the log of pod %s of cluster %s: %w", reachingPod, m.ID, err)
	}
	var reports []struct{ Address, Error string }
	if err := json.Unmarshal(log, &reports); err != nil {
		return nil, fmt.Errorf("the log of pod %s of cluster %s: %w: %.200q", reachingPod, m.ID, err, log)
	}
	results := map[string]string{}
	for _, t := range reports {
		results[t.Address] = t.Error
	}
	return results, nil
}

func (p *networkPods) find(m *survey.Member) *podCluster {
	for _, target := range p.clusters {
		if target.member == m {
			return target
		}
	}
	return nil
}

// await waits until a pod has reached a phase, and returns it.
func (p *networkPods) await(ctx context.Context, target *podCluster, name string, phase corev1.PodPhase) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, p.check.timeout)
	defer cancel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: manifests.AgentNamespace, Name: name}}
	err := connection.Poll(ctx, func(ctx context.Context) (bool, error) {
		err := target.member.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		if err == nil && pod.Status.Phase == corev1.PodFailed {
			return false, errors.New("it has failed")
		}
		return err == nil && pod.Status.Phase == phase, connection.IgnoreTransient(err)
	})
	if err != nil {
		return nil, fmt.Errorf("pod %s of cluster %s is not %s (%s): %w: if its image cannot be pulled, pass --image-registry or --agent-image",
			name, target.member.ID, phase, workload.PodState(pod), err)
	}
	return pod, nil
}
