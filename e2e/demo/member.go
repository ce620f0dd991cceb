// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// namespace is where the story plays, in both members.
const namespace = "demo"

// member is a member cluster.
type member struct {
	name    string
	cluster *lab.Cluster
	client  client.Client
	// view holds the namespace as the API server tells it, at once.
	view client.Reader
	// hub holds the member's credentials for the hub.
	hub *rest.Config
	// dns is where CoreDNS listens.
	dns string
	// programs are the agent, then CoreDNS.
	programs []*program
}

func newMember(cluster *lab.Cluster) (*member, error) {
	scheme, err := agent.Scheme()
	if err != nil {
		return nil, err
	}
	c, err := cluster.Client(scheme)
	if err != nil {
		return nil, err
	}
	return &member{name: cluster.Name, cluster: cluster, client: c}, nil
}

// folder returns the folder of the cluster's files.
func (m *member) folder() string { return filepath.Dir(m.cluster.Kubeconfig()) }

// watch makes the namespace and fills the view, which is kept up to date until ctx ends.
func (m *member) watch(ctx context.Context) error {
	if err := m.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	view, err := cache.New(m.cluster.Config(), cache.Options{
		Scheme:            m.client.Scheme(),
		DefaultNamespaces: map[string]cache.Config{namespace: {}},
	})
	if err != nil {
		return err
	}
	for _, kind := range []client.Object{
		&mcsv1beta1.ServiceExport{}, &mcsv1beta1.ServiceImport{}, &corev1.Service{}, &discoveryv1.EndpointSlice{},
	} {
		if _, err := view.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return err
		}
	}
	go func() { _ = view.Start(ctx) }() // it never returns an error
	if !view.WaitForCacheSync(ctx) {
		return errors.Join(errors.New("the watch did not begin"), context.Cause(ctx))
	}
	m.view = view
	return nil
}

// startAgent starts the member's agent, which knows its cluster's ID from the ClusterProperty.
func (m *member) startAgent() error {
	path, err := findProgram("tombolo-agent")
	if err != nil {
		return err
	}
	hub, err := m.writeHubKubeconfig()
	if err != nil {
		return err
	}
	ranges := make([]string, 0, len(m.cluster.ServiceCIDRs))
	for _, r := range m.cluster.ServiceCIDRs {
		ranges = append(ranges, r.String())
	}
	p, err := startProgram(m.folder(), path,
		"--kubeconfig="+m.cluster.Kubeconfig(),
		"--hub-kubeconfig="+hub,
		"--service-cidrs="+strings.Join(ranges, ","),
		"--leader-elect=false",
		"--metrics-bind-address=0",
		"--health-probe-bind-address=0",
		"--log-format=text",
		"--v=1",
	)
	if err != nil {
		return err
	}
	m.programs = append(m.programs, p)
	return nil
}
