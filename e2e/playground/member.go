// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// namespace is that of the demo's services, in both members.
const namespace = "demo"

// member is a member cluster of the demo.
type member struct {
	*lab.Cluster
	client client.Client
	// hub holds the member's credentials for the hub.
	hub *rest.Config
	// dns is the address of CoreDNS.
	dns string
}

func newMember(cluster *lab.Cluster) (*member, error) {
	scheme, err := membership.Scheme()
	if err != nil {
		return nil, err
	}
	c, err := cluster.Client(scheme)
	return &member{Cluster: cluster, client: c}, err
}

// folder returns the folder of the cluster's files.
func (m *member) folder() string { return filepath.Dir(m.Kubeconfig()) }

// create creates objects in the member.
func (m *member) create(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		if err := m.client.Create(ctx, o); err != nil {
			return fmt.Errorf("%s: create %T %s: %w", m.Name, o, o.GetName(), err)
		}
	}
	return nil
}

// start starts what runs in a member and returns when CoreDNS answers and the agent's heartbeat is on the hub.
func (m *member) start(ctx context.Context, hub client.Client, plugin string, agentArgs ...string) error {
	if err := m.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	if err := m.startAgent(ctx, hub, agentArgs); err != nil {
		return err
	}
	return m.startCoreDNS(ctx, plugin)
}

// startAgent starts the member's agent, which reads its cluster's ID from the ClusterProperty, and returns when the hub has
// all that the member exports: nothing yet.
func (m *member) startAgent(ctx context.Context, hub client.Client, more []string) error {
	path, err := findProgram("tombolo-agent")
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(m.folder(), "hub.kubeconfig")
	if err := lab.WriteKubeconfig(kubeconfig, m.hub); err != nil {
		return err
	}
	ready := func(ctx context.Context) error {
		heartbeat := &hubv1alpha1.Heartbeat{}
		key := client.ObjectKey{Namespace: clusterset.ClusterID(m.Name).HubNamespace(), Name: hubv1alpha1.HeartbeatName}
		if err := hub.Get(ctx, key, heartbeat); err != nil {
			return err
		}
		if heartbeat.Spec.Publication != hubv1alpha1.PublicationComplete {
			return fmt.Errorf("the heartbeat has publication %q", heartbeat.Spec.Publication)
		}
		return nil
	}
	return m.Program(path, ready, append([]string{
		"--kubeconfig=" + m.Kubeconfig(),
		"--hub-kubeconfig=" + kubeconfig,
		"--service-cidrs=" + lab.Joined(m.ServiceCIDRs),
		"--leader-elect=false",
		"--metrics-bind-address=0",
		"--health-probe-bind-address=0",
		"--log-format=text",
		"--v=1",
	}, more...)...).Start(ctx)
}

// startCoreDNS starts the member's CoreDNS and returns when it answers.
func (m *member) startCoreDNS(ctx context.Context, plugin string) error {
	path, err := findProgram("coredns")
	if err != nil {
		return err
	}
	corefile := func(port int) string { return fmt.Sprintf(corefiles[plugin], port, m.Kubeconfig()) }
	m.dns, err = membership.StartDNS(ctx, m.Cluster, path, corefile, func(ctx context.Context, address string) error {
		values, err := exchange(ctx, address, "dns-version.clusterset.local", dns.TypeTXT)
		if err == nil && slices.Contains(values, "NXDOMAIN") || slices.Contains(values, "SERVFAIL") {
			err = fmt.Errorf("the version of the zone is %v", values)
		}
		return err
	})
	return err
}

// findProgram returns the path of a program in bin/ of this repository.
func findProgram(name string) (string, error) {
	root, err := lab.Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "bin", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: run \"make demo\"", err)
	}
	return path, nil
}
