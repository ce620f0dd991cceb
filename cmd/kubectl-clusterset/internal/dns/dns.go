// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dns implements the command dns: it changes the Corefile of a cluster.
package dns

import (
	"context"
	"fmt"
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

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/clusterdns"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/writing"
	"github.com/tombolo-mcs/tombolo/manifests"
)

const about = `Configure the DNS of the current context's cluster for the names of the clusterset, by a marked change of its Corefile.

  --by tombolo     forwards clusterset.local to Tombolo's DNS, which join has installed. A forward to an address of the
                   past is replaced, as after a reinstallation
  --by kubernetes  configures the plugin "kubernetes" of CoreDNS, and grants the right that it needs
  --by none        removes the change; every other byte of the Corefile stays as it is

If another tool owns the Corefile and resets it (k3s, AKS, the EKS add-on), see manifests/dns/corefile instead.`

// New returns the command dns.
func New(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	d := &command{}
	cmd := &cobra.Command{
		Use:     "dns",
		Short:   "configure a cluster's DNS for the clusterset",
		Long:    about,
		Example: "  kubectl clusterset dns --context east --dry-run\n  kubectl clusterset dns --context east",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := d.parse(); err != nil {
				return output.Usage(err)
			}
			var err error
			if d.Member, err = connection.OpenMember(usual, d.WriteFlags); err != nil {
				return err
			}
			d.R = d.NewReport(streams)
			return d.run(cmd.Context())
		},
	}
	d.AddFlags(cmd)
	d.AddObjectOutput(cmd)
	cmd.Flags().StringVar(&d.By, "by", clusterdns.ByTombolo, "tombolo, kubernetes or none")
	cmd.Flags().StringVar(&d.configMap, "configmap", "kube-system/coredns", "the ConfigMap with the Corefile of the cluster's CoreDNS")
	return cmd
}

// command is the state of the command dns.
type command struct {
	connection.WriteFlags
	clusterdns.Editor
	configMap string
}

// parse validates the flags.
func (d *command) parse() error {
	namespace, name, found := strings.Cut(d.configMap, "/")
	if !found {
		return fmt.Errorf("--configmap=%s: must be <namespace>/<name>", d.configMap)
	}
	d.Key = client.ObjectKey{Namespace: namespace, Name: name}
	if !slices.Contains([]string{clusterdns.ByTombolo, clusterdns.ByKubernetes, clusterdns.ByNone}, d.By) {
		return fmt.Errorf("--by=%s: must be tombolo, kubernetes or none", d.By)
	}
	return nil
}

func (d *command) run(ctx context.Context) error {
	config := &corev1.ConfigMap{}
	err := d.Member.Client.Get(ctx, d.Key, config)
	if connection.IsAbsent(err) || err == nil && config.Data[clusterdns.CorefileKey] == "" {
		return fmt.Errorf("ConfigMap %s has no %s: pass --configmap, or change the DNS by hand (see manifests/dns/corefile)", d.Key, clusterdns.CorefileKey)
	}
	if err != nil {
		return fmt.Errorf("get ConfigMap %s: %w", d.Key, err)
	}
	edited, err := d.Edit(ctx, config.Data[clusterdns.CorefileKey])
	if err != nil {
		return err
	}
	d.R.Titlef("%s", d.Heading("In this cluster"))
	if d.By == clusterdns.ByKubernetes {
		rights, err := manifests.Render("dns/corefile")
		if err != nil {
			return err
		}
		if err := writing.ApplyAll(ctx, d.Member, rights, d.R); err != nil {
			return err
		}
	}
	config.Data[clusterdns.CorefileKey] = edited
	outcome, err := d.Member.Install.Update(ctx, config)
	if err != nil {
		return err
	}
	object, err := configMapObject(d.Key, config.Data)
	if err != nil {
		return err
	}
	if err := d.R.Applied(outcome, object); err != nil {
		return err
	}
	if d.By != clusterdns.ByKubernetes {
		if err := d.DeleteRights(ctx, edited); err != nil {
			return err
		}
	}
	if d.IsDryRun() {
		return nil
	}
	d.R.Titlef("CoreDNS notices by itself within a minute or two where its Corefile has \"reload\", as it usually has.")
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
