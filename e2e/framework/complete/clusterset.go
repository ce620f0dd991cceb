// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package complete joins complete clusters of package lab, with nodes and pods, to a clusterset, and installs Tombolo as a
// user does: by images loaded into the nodes and either "kubectl clusterset" or kustomize alone. The stories of e2e/stories and
// "make lab-up" use it. Linux and root.
package complete

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// HubName is the name, and the context, of a hub that is no member.
const HubName = "hub"

// Installation is how Tombolo is installed in a cluster.
type Installation struct {
	Installer Installer
	// DNS serves the names of the clusterset; empty for a hub.
	DNS DNS
}

// Installer is a way to install Tombolo.
type Installer string

// The ways to install.
const (
	ByCommand    Installer = "kubectl clusterset"
	ByInvitation Installer = "an invitation"
	ByKustomize  Installer = "kustomize"
	ByHelm       Installer = "Helm"
)

// DNS is the CoreDNS plugin that serves the clusterset's names.
type DNS string

// The plugins.
const (
	OurPlugin     DNS = "clusterset"
	CoreDNSPlugin DNS = "kubernetes"
)

// Options say what a clusterset consists of.
type Options struct {
	// HubAmongMembers makes the first cluster the hub, too. Else the hub is a cluster of its own.
	HubAmongMembers bool
	// Members are the names of the clusters that join, which are their IDs too. Without one, nothing is installed.
	Members []string
	// Late are clusters that run, and have not joined.
	Late []string
	// Installations are by the names of clusters, with the hub's under HubName. The default is ByCommand with OurPlugin.
	Installations map[string]Installation
	// Networks are the networks of the clusters, by their names. If there are any, each cluster has gateways. Clusters of different
	// networks have the same addresses.
	Networks map[string]string
	// IPv4Only is the name of a cluster whose machine, pods and Services have no IPv6. Empty: all have both.
	IPv4Only string
	// Oldest is the name of a cluster that runs the oldest Kubernetes that Tombolo supports. Empty: none does.
	Oldest string
	// Before is the root of an earlier version, as "make upgrade-check" builds it, which is installed first. Empty: this version is.
	Before string
	// EarlierGateways is the name of a cluster whose gateways are of the version Before, while all else is of this version. Empty: none are.
	EarlierGateways string
	// Logs is as in lab.Options.
	Logs string
	// Log receives a line for each step.
	Log func(format string, args ...any)
}

// Installation returns how Tombolo is installed in a cluster.
func (o Options) Installation(name string) Installation {
	if i, found := o.Installations[name]; found {
		return i
	}
	return Installation{ByCommand, OurPlugin}
}

// Clusterset is a lab of complete clusters with Tombolo installed. Close ends it.
type Clusterset struct {
	*lab.Lab
	Options Options
	// Hub may be one of the members.
	Hub *lab.Cluster
	// Kubeconfig is the path of a file with a context for each cluster, by its name. The hub's is "hub" if it lives apart.
	Kubeconfig string

	programs     programs // of the version that is installed
	this, before programs
}

// Start starts the clusters, installs Tombolo in all but the late ones, and returns when each is a member. On an error
// nothing is left behind.
func Start(ctx context.Context, o Options) (*Clusterset, error) {
	root, err := lab.Root()
	if err != nil {
		return nil, err
	}
	this, err := findPrograms(root)
	if err != nil {
		return nil, err
	}
	before := this
	if o.Before != "" {
		if before, err = findPrograms(o.Before); err != nil {
			return nil, err
		}
		before.before = true
	}
	var clusters []lab.ClusterOptions
	if !o.HubAmongMembers {
		clusters = append(clusters, lab.MachineHub())
	}
	for _, name := range o.names() {
		c := lab.CompleteMember(name)
		c.Network = o.Networks[name]
		if name == o.Oldest {
			c.Release = lab.Oldest
		}
		if name == o.IPv4Only {
			c.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
		}
		clusters = append(clusters, c)
	}
	installed := before
	if o.EarlierGateways != "" {
		installed = this
	}
	l, err := lab.New(ctx, lab.Options{Clusters: clusters, Logs: o.Logs, Log: o.Log})
	if err != nil {
		return nil, err
	}
	c := &Clusterset{Lab: l, Options: o, Hub: l.Cluster(o.hub()), programs: installed, this: this, before: before}
	if err := c.install(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return c, nil
}

func (o Options) hub() string {
	if o.HubAmongMembers {
		return o.names()[0]
	}
	return HubName
}

// names returns those of the clusters that are members or may become such, in their order.
func (o Options) names() []string { return slices.Concat(o.Members, o.Late) }

func (c *Clusterset) install(ctx context.Context) error {
	if err := c.writeKubeconfig(); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, cluster := range c.Clusters() {
		if cluster.Node != nil {
			g.Go(func() error { return c.prepare(gctx, cluster) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if len(c.Options.Members) == 0 {
		return nil
	}
	if err := c.InstallHub(ctx); err != nil {
		return err
	}
	g, gctx = errgroup.WithContext(ctx)
	for _, name := range c.Options.Members {
		g.Go(func() error {
			if err := c.Join(gctx, name); err != nil {
				return fmt.Errorf("cluster %s: %w", name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// prepare brings a cluster to where Tombolo finds one: with its images, and a DNS of its own.
func (c *Clusterset) prepare(ctx context.Context, cluster *lab.Cluster) error {
	images := c.this.images
	if c.Options.Before != "" {
		images = slices.Concat(images, c.before.images)
	}
	if err := cluster.Node.LoadImages(ctx, images...); err != nil {
		return err
	}
	if err := cluster.Apply(ctx, c.clusterDNS(cluster)); err != nil {
		return err
	}
	c.sayf("cluster %s: images loaded, its own DNS installed", cluster.Name)
	return nil
}

func (c *Clusterset) sayf(format string, args ...any) {
	if c.Options.Log != nil {
		c.Options.Log(format, args...)
	}
}

// writeKubeconfig writes one file for all clusters.
func (c *Clusterset) writeKubeconfig() error {
	c.Kubeconfig = filepath.Join(c.Folder(), "kubeconfig")
	return lab.WriteContexts(c.Kubeconfig, c.Options.names()[0], c.Clusters()...)
}
