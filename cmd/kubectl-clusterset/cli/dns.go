// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/corefile"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// zone is the DNS zone of the clusterset (KEP-1645).
const zone = "clusterset.local"

// corefileKey is the usual key of the Corefile in the ConfigMap of CoreDNS.
const corefileKey = "Corefile"

const aboutDNS = `Configure the DNS of the current context's cluster for the names of the clusterset, by a marked change of its Corefile.

  --by tombolo     forwards clusterset.local to Tombolo's DNS, which join has installed. A forward to an address of the
                   past is replaced, as after a reinstallation
  --by kubernetes  configures the plugin "kubernetes" of CoreDNS, and grants the right that it needs
  --by none        removes the change; every other byte of the Corefile stays as it is

If another tool owns the Corefile and resets it (k3s, AKS, the EKS add-on), see manifests/dns/corefile instead.`

// The values of --by.
const (
	byTombolo    = "tombolo"
	byKubernetes = "kubernetes"
	byNone       = "none"
)

func newDNS(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	d := &dnsEdit{}
	cmd := &cobra.Command{
		Use:     "dns",
		Short:   "configure a cluster's DNS for the clusterset",
		Long:    aboutDNS,
		Example: "  kubectl clusterset dns --context east --dry-run\n  kubectl clusterset dns --context east",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := d.parse(); err != nil {
				return usageError{err}
			}
			config, err := usual.ToRESTConfig()
			if err != nil {
				return usageError{err}
			}
			if d.member, err = connect("this cluster", "--kubeconfig and --context", config, d.writeFlags); err != nil {
				return err
			}
			d.r = d.report(streams)
			return d.run(cmd.Context())
		},
	}
	d.addFlags(cmd)
	d.addObjectOutput(cmd)
	cmd.Flags().StringVar(&d.by, "by", byTombolo, "tombolo, kubernetes or none")
	cmd.Flags().StringVar(&d.configMap, "configmap", "kube-system/coredns", "the ConfigMap with the Corefile of the cluster's CoreDNS")
	return cmd
}

// dnsEdit is the state of the command dns.
type dnsEdit struct {
	writeFlags
	by, configMap string

	key    client.ObjectKey
	member *cluster
	r      *report
}

// parse validates the flags.
func (d *dnsEdit) parse() error {
	namespace, name, found := strings.Cut(d.configMap, "/")
	if !found {
		return fmt.Errorf("--configmap=%s: must be <namespace>/<name>", d.configMap)
	}
	d.key = client.ObjectKey{Namespace: namespace, Name: name}
	if !slices.Contains([]string{byTombolo, byKubernetes, byNone}, d.by) {
		return fmt.Errorf("--by=%s: must be tombolo, kubernetes or none", d.by)
	}
	return nil
}

func (d *dnsEdit) run(ctx context.Context) error {
	config := &corev1.ConfigMap{}
	err := d.member.client.Get(ctx, d.key, config)
	if isAbsentKind(err) || err == nil && config.Data[corefileKey] == "" {
		return fmt.Errorf("ConfigMap %s has no %s: pass --configmap, or change the DNS by hand (see manifests/dns/corefile)", d.key, corefileKey)
	}
	if err != nil {
		return fmt.Errorf("get ConfigMap %s: %w", d.key, err)
	}
	edited, err := d.edit(ctx, config.Data[corefileKey])
	if err != nil {
		return err
	}
	d.r.titlef("%s", d.heading("In this cluster"))
	if d.by == byKubernetes {
		rights, err := manifests.Render("dns/corefile")
		if err != nil {
			return err
		}
		if err := applyAll(ctx, d.member, rights, d.r); err != nil {
			return err
		}
	}
	config.Data[corefileKey] = edited
	outcome, err := d.member.install.Update(ctx, config)
	if err != nil {
		return err
	}
	object, err := configMapObject(d.key, config.Data)
	if err != nil {
		return err
	}
	if err := d.r.applied(outcome, object); err != nil {
		return err
	}
	if d.by != byKubernetes {
		if err := d.deleteRights(ctx, edited); err != nil {
			return err
		}
	}
	if d.isDryRun() {
		return nil
	}
	d.r.titlef("CoreDNS notices by itself within a minute or two where its Corefile has \"reload\", as it usually has.")
	return nil
}

// configMapObject returns a ConfigMap with these data.
func configMapObject(key client.ObjectKey, data map[string]string) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: data,
	})
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w", key, err)
	}
	object := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	return object, nil
}

// edit returns the Corefile with the change that --by selects, and without any other change of this command.
func (d *dnsEdit) edit(ctx context.Context, text string) (string, error) {
	bare, err := corefile.RemoveMulticluster(text)
	if err != nil {
		return "", err
	}
	if d.by != byTombolo {
		if bare, err = corefile.RemoveForward(bare); err != nil {
			return "", err
		}
	}
	switch d.by {
	case byTombolo:
		return d.forward(ctx, bare)
	case byKubernetes:
		return corefile.AddMulticluster(bare, zone)
	}
	return bare, nil
}

// forward returns the Corefile with a forward to Tombolo's DNS. If another user has written one, to an address that no Service has any more, its
// address is replaced.
func (d *dnsEdit) forward(ctx context.Context, text string) (string, error) {
	to, err := d.addresses(ctx)
	if err != nil {
		return "", err
	}
	services, err := serviceRanges(ctx, d.member)
	if err != nil {
		return "", err
	}
	found := survey.ReadCorefile(ctx, d.member.client, d.key, services.prefixes)
	switch {
	case found.In != "" && found.State == survey.DNSForwarded:
		return text, nil // a second server block for the zone would be invalid
	case found.In != "":
		return "", fmt.Errorf("%s, in %s, which it imports: %s", found.Message, found.In, found.Next)
	}
	edited, err := corefile.AddForward(text, zone, to...)
	switch {
	case err == nil:
		return edited, nil
	case found.State == survey.DNSForwarded:
		return text, nil
	case found.State == survey.DNSStale:
		return corefile.Retarget(text, zone, to...)
	}
	return "", err
}

// printNextStep prints the remaining step of join: the cluster's own DNS must forward the names of the clusterset.
func (j *joinCommand) printNextStep(ctx context.Context) error {
	j.r.titlef("%s is a member now.", j.id)
	found := survey.ReadDNSConfiguration(ctx, j.member.client, j.own.services, "")
	next := "Next"
	switch found.State {
	case survey.DNSForwarded, survey.DNSServed:
		j.r.titlef("Its DNS is configured: %s.", found.Message)
		return nil
	case survey.DNSStale:
		j.r.titlef("Next, repair its DNS, because names of the clusterset do not resolve: %s. Run: %s", found.Message, found.Next)
		return nil
	case survey.DNSNotKnown:
		next = "Next, unless you have done so already (" + found.Message + ")"
	case survey.DNSNotSet:
	}
	d := &dnsEdit{member: j.member}
	addresses, err := d.addresses(ctx)
	if err != nil {
		j.r.titlef("%s, have its DNS answer for %s: \"kubectl clusterset dns --by kubernetes\".", next, zone)
		return nil //nolint:nilerr // without Tombolo's DNS, CoreDNS can serve the names
	}
	block, err := corefile.ForwardBlock(zone, addresses...)
	if err != nil {
		return err
	}
	j.r.titlef("%s, have its DNS answer for %s: \"kubectl clusterset dns\" adds this to its Corefile.\n\n%s", next, zone, block)
	return nil
}

// addresses returns the addresses of Tombolo's DNS.
func (d *dnsEdit) addresses(ctx context.Context) ([]netip.Addr, error) {
	service := &corev1.Service{}
	err := d.member.client.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: manifests.DNSService}, service)
	if isAbsentKind(err) {
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

// deleteRights deletes the rights that only the plugin "kubernetes" of CoreDNS needs, unless the Corefile, or what it imports, has the plugin
// serve a clusterset, also by hand: without them, CoreDNS never becomes ready, and no pod of the cluster resolves any name.
func (d *dnsEdit) deleteRights(ctx context.Context, text string) error {
	custom := &corev1.ConfigMap{}
	if err := client.IgnoreNotFound(d.member.client.Get(ctx, survey.CustomCorefile, custom)); err != nil {
		return fmt.Errorf("get ConfigMap %s: %w", survey.CustomCorefile, err)
	}
	if usesMulticluster(append(slices.Collect(maps.Values(custom.Data)), text)...) {
		d.r.notef("the rights of the cluster's DNS for ServiceImports stay: its configuration has \"multicluster\", which needs them. Take that out by hand first, and then run this command again")
		return nil
	}
	rights, err := manifests.Render("dns/corefile")
	if err != nil {
		return err
	}
	return deleteExisting(ctx, d.member, rights, d.r)
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
