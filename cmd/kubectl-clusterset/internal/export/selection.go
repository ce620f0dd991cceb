// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// selection selects Services of a namespace.
type selection struct {
	output.DryRunFlags
	all      bool
	selector string

	names     []string
	namespace string
	labels    labels.Selector
	member    *connection.Cluster
	r         *output.Report
}

// define completes a command that selects Services, for example by the names that complete returns, and then runs.
func (p *selection) define(
	cmd *cobra.Command, usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams,
	complete func(context.Context) ([]string, error), run func(context.Context) error,
) {
	p.AddFlags(cmd)
	cmd.Flags().BoolVar(&p.all, "all", false, "all Services of the namespace")
	cmd.Flags().StringVarP(&p.selector, "selector", "l", "", "Services with these labels")
	cmd.Args, cmd.ValidArgsFunction = cobra.ArbitraryArgs, output.CompleteWith(complete)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p.r = p.NewReport(streams)
		if err := p.connect(usual, args); err != nil {
			return err
		}
		return run(cmd.Context())
	}
}

var errNoSelection = errors.New("which Services? Pass their names, or -l, or --all; and -n for their namespace, or NAMESPACE/SERVICE")

// connect validates the flags, and connects to the cluster of the kubeconfig flags.
func (p *selection) connect(usual *genericclioptions.ConfigFlags, names []string) error {
	ways := 0
	for _, given := range []bool{len(names) > 0, p.selector != "", p.all} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return output.Usage(errNoSelection)
	}
	var err error
	if p.labels, err = labels.Parse(p.selector); err != nil {
		return output.Usage(fmt.Errorf("-l %s: %w", p.selector, err))
	}
	if p.namespace, _, err = usual.ToRawKubeConfigLoader().Namespace(); err != nil {
		return output.Usage(err)
	}
	if err := p.selectNames(usual, names); err != nil {
		return err
	}
	p.member, err = connection.OpenMember(usual, connection.WriteFlags{DryRunFlags: p.DryRunFlags})
	return err
}

// selectNames selects Services of one namespace by name. Each argument is SERVICE or NAMESPACE/SERVICE.
func (p *selection) selectNames(usual *genericclioptions.ConfigFlags, arguments []string) error {
	for i, argument := range arguments {
		key, err := connection.ServiceKey(usual, argument)
		if err != nil {
			return err
		}
		if i > 0 && key.Namespace != p.namespace {
			return output.Usage(fmt.Errorf("%s is in namespace %s, and %s in %s: run the command once for each namespace", arguments[0], p.namespace, argument, key.Namespace))
		}
		p.namespace = key.Namespace
		p.names = append(p.names, key.Name)
	}
	slices.Sort(p.names)
	p.names = slices.Compact(p.names)
	return nil
}

// isSelector reports whether the Services are selected by labels or all, not by name.
func (p *selection) isSelector() bool { return len(p.names) == 0 }

// checkKinds returns an error if the cluster has no kind ServiceExport.
func (p *selection) checkKinds(ctx context.Context) error {
	err := p.member.Client.List(ctx, &mcsv1beta1.ServiceExportList{}, client.InNamespace(p.namespace), client.Limit(1))
	if connection.IsAbsent(err) {
		return errors.New("this cluster does not know ServiceExports: have it join a clusterset first (kubectl clusterset join)")
	}
	if err != nil {
		return fmt.Errorf("list ServiceExports of namespace %s: %w", p.namespace, err)
	}
	return nil
}

// services returns the selected Services, sorted by name. Derived Services are only selected by name.
func (p *selection) services(ctx context.Context) ([]selectedService, error) {
	found := &corev1.ServiceList{}
	if err := p.member.Client.List(ctx, found, client.InNamespace(p.namespace)); err != nil {
		return nil, fmt.Errorf("list Services of namespace %s: %w", p.namespace, err)
	}
	var result []selectedService
	for i := range found.Items {
		service := &found.Items[i]
		picked := p.isSelector() && !clusterset.IsManaged(service.Labels) && p.labels.Matches(labels.Set(service.Labels))
		if picked || slices.Contains(p.names, service.Name) {
			result = append(result, selectedService{service.Name, service})
		}
	}
	for _, name := range p.names {
		if !slices.ContainsFunc(result, func(s selectedService) bool { return s.name == name }) {
			result = append(result, selectedService{name: name})
		}
	}
	slices.SortFunc(result, func(a, b selectedService) int { return cmp.Compare(a.name, b.name) })
	return result, nil
}
