// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterdns edits the Corefile of a cluster's CoreDNS, for the names of the clusterset.
package clusterdns

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/ranges"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/writing"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/memberdns"
	"github.com/tombolo-mcs/tombolo/internal/corefile"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// zone is the DNS zone of the clusterset (KEP-1645).
const zone = "clusterset.local"

// CorefileKey is the usual key of the Corefile in the ConfigMap of CoreDNS.
const CorefileKey = "Corefile"

// The values of --by.
const (
	ByTombolo    = "tombolo"
	ByKubernetes = "kubernetes"
	ByNone       = "none"
)

// Editor edits the Corefile in a ConfigMap of a cluster.
type Editor struct {
	By     string
	Key    client.ObjectKey // of the ConfigMap
	Member *connection.Cluster
	R      *output.Report
}

// Edit returns the Corefile with the change that --by selects, and without any other change of this command.
func (d *Editor) Edit(ctx context.Context, text string) (string, error) {
	bare, err := corefile.RemoveMulticluster(text)
	if err != nil {
		return "", err
	}
	if d.By != ByTombolo {
		if bare, err = corefile.RemoveForward(bare); err != nil {
			return "", err
		}
	}
	switch d.By {
	case ByTombolo:
		return d.forward(ctx, bare)
	case ByKubernetes:
		return corefile.AddMulticluster(bare, zone)
	}
	return bare, nil
}

// forward returns the Corefile with a forward to Tombolo's DNS. If another user has written one, to an address that no Service has any more, its
// address is replaced.
func (d *Editor) forward(ctx context.Context, text string) (string, error) {
	to, err := d.addresses(ctx)
	if err != nil {
		return "", err
	}
	services, err := ranges.Services(ctx, d.Member)
	if err != nil {
		return "", err
	}
	found := memberdns.ReadCorefile(ctx, d.Member.Client, d.Key, services.Prefixes)
	switch {
	case found.In != "" && found.State == memberdns.Forwarded:
		return text, nil // a second server block for the zone would be invalid
	case found.In != "":
		return "", fmt.Errorf("%s, in %s, which it imports: %s", found.Message, found.In, found.Next)
	}
	edited, err := corefile.AddForward(text, zone, to...)
	switch {
	case err == nil:
		return edited, nil
	case found.State == memberdns.Forwarded:
		return text, nil
	case found.State == memberdns.Stale:
		return corefile.Retarget(text, zone, to...)
	}
	return "", err
}

// addresses returns the addresses of Tombolo's DNS.
func (d *Editor) addresses(ctx context.Context) ([]netip.Addr, error) {
	service := &corev1.Service{}
	err := d.Member.Client.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: manifests.DNSService}, service)
	if connection.IsAbsent(err) {
		return nil, fmt.Errorf("there is no Service %s/%s in this cluster: join installs it, unless --profile is agent; or pass --by kubernetes", manifests.AgentNamespace, manifests.DNSService)
	}
	if err != nil {
		return nil, fmt.Errorf("get Service %s: %w", manifests.DNSService, err)
	}
	var result []netip.Addr
	for _, ip := range service.Spec.ClusterIPs {
		parsed, err := netip.ParseAddr(ip)
		if err != nil {
			return nil, fmt.Errorf("the address of Service %s: %w", manifests.DNSService, err)
		}
		result = append(result, parsed)
	}
	return result, nil
}

// DeleteRights deletes the rights that only the plugin "kubernetes" of CoreDNS needs, unless the Corefile, or what it imports, has the plugin
// serve a clusterset, also by hand: without them, CoreDNS never becomes ready, and no pod of the cluster resolves any name.
func (d *Editor) DeleteRights(ctx context.Context, text string) error {
	custom := &corev1.ConfigMap{}
	if err := client.IgnoreNotFound(d.Member.Client.Get(ctx, memberdns.CustomCorefile, custom)); err != nil {
		return fmt.Errorf("get ConfigMap %s: %w", memberdns.CustomCorefile, err)
	}
	if usesMulticluster(append(slices.Collect(maps.Values(custom.Data)), text)...) {
		d.R.Notef("the rights of the cluster's DNS for ServiceImports stay: its configuration has \"multicluster\", which needs them. Take that out by hand first, and then run this command again")
		return nil
	}
	rights, err := manifests.Render("dns/corefile")
	if err != nil {
		return err
	}
	return writing.DeleteExisting(ctx, d.Member, rights, d.R)
}

// usesMulticluster reports whether one of these files configures "multicluster" for the plugin "kubernetes" of CoreDNS.
func usesMulticluster(files ...string) bool {
	for _, file := range files {
		for line := range strings.Lines(file) {
			if words := strings.Fields(line); len(words) > 0 && words[0] == "multicluster" {
				return true
			}
		}
	}
	return false
}

// Revert reverts the change of the command dns in the usual ConfigMap of CoreDNS. It does not change manual edits.
func Revert(ctx context.Context, member *connection.Cluster, r *output.Report) error {
	d := &Editor{By: ByNone, Member: member, R: r, Key: client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "coredns"}}
	config := &corev1.ConfigMap{}
	err := member.Client.Get(ctx, d.Key, config)
	if connection.IsAbsent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get ConfigMap %s: %w", d.Key, err)
	}
	edited, err := d.Edit(ctx, config.Data[CorefileKey])
	if err != nil {
		r.Notef("ConfigMap %s stays as it is (%v): take out by hand what forwards %s", d.Key, err, zone)
		return nil // so do the rights
	}
	if edited != config.Data[CorefileKey] {
		config.Data[CorefileKey] = edited
		outcome, err := member.Install.Update(ctx, config)
		if err != nil {
			return fmt.Errorf("%w: run this again", err)
		}
		r.Outcome(outcome, "configmap/"+d.Key.Name)
	} else if strings.Contains(edited, zone) {
		r.Notef("ConfigMap %s speaks of %s: take out by hand what was added by hand", d.Key, zone)
	}
	return d.DeleteRights(ctx, edited)
}

// PrintNextStep prints the remaining step of join: the DNS of a new member must forward the names of the clusterset. services are the ranges of
// its Services.
func PrintNextStep(ctx context.Context, member *connection.Cluster, services []netip.Prefix, r *output.Report) error {
	found := memberdns.Read(ctx, member.Client, services, "")
	next := "Next"
	switch found.State {
	case memberdns.Forwarded, memberdns.Served:
		r.Titlef("Its DNS is configured: %s.", found.Message)
		return nil
	case memberdns.Stale:
		r.Titlef("Next, repair its DNS, because names of the clusterset do not resolve: %s. Run: %s", found.Message, found.Next)
		return nil
	case memberdns.NotKnown:
		next = "Next, unless you have done so already (" + found.Message + ")"
	case memberdns.NotSet:
	}
	d := &Editor{Member: member}
	addresses, err := d.addresses(ctx)
	if err != nil {
		r.Titlef("%s, have its DNS answer for %s: \"kubectl clusterset dns --by kubernetes\".", next, zone)
		return nil //nolint:nilerr // without Tombolo's DNS, CoreDNS can serve the names
	}
	block, err := corefile.ForwardBlock(zone, addresses...)
	if err != nil {
		return err
	}
	r.Titlef("%s, have its DNS answer for %s: \"kubectl clusterset dns\" adds this to its Corefile.\n\n%s", next, zone, block)
	return nil
}
