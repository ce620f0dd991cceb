// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
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

	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/corefile"
)

// zone is the DNS zone of the clusterset (KEP-1645).
const zone = "clusterset.local"

// corefileKey is the usual key of the Corefile in the ConfigMap of CoreDNS.
const corefileKey = "Corefile"

const aboutDNS = `Configure the DNS of the current context's cluster for the names of the clusterset, by a marked change of its Corefile.

  --by tombolo     forwards clusterset.local to Tombolo's DNS, which join has installed
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
		if err := d.deleteRights(ctx); err != nil {
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
		to, err := d.addresses(ctx)
		if err != nil {
			return "", err
		}
		return corefile.AddForward(bare, zone, to...)
	case byKubernetes:
		return corefile.AddMulticluster(bare, zone)
	}
	return bare, nil
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

// deleteRights deletes the rights that only the plugin "kubernetes" of CoreDNS needs.
func (d *dnsEdit) deleteRights(ctx context.Context) error {
	rights, err := manifests.Render("dns/corefile")
	if err != nil {
		return err
	}
	return deleteExisting(ctx, d.member, rights, d.r)
}
