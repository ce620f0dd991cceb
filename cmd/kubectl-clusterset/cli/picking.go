// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// picking says which Services of a namespace are meant.
type picking struct {
	dryRun, all bool
	selector    string

	names     []string
	namespace string
	labels    labels.Selector
	member    *cluster
	r         *report
}

func (p *picking) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&p.dryRun, "dry-run", false, "check and print the changes, without making them")
	flags.BoolVar(&p.all, "all", false, "all Services of the namespace")
	flags.StringVarP(&p.selector, "selector", "l", "", "Services with these labels")
}

var errWhich = errors.New("which Services? Pass their names, or -l, or --all; and -n for their namespace")

// connect reads the flags, and connects to the cluster of the usual ones.
func (p *picking) connect(usual *genericclioptions.ConfigFlags, names []string) error {
	ways := 0
	for _, given := range []bool{len(names) > 0, p.selector != "", p.all} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return usageError{errWhich}
	}
	p.names = slices.Compact(slices.Sorted(slices.Values(names)))
	var err error
	if p.labels, err = labels.Parse(p.selector); err != nil {
		return usageError{fmt.Errorf("-l %s: %w", p.selector, err)}
	}
	if p.namespace, _, err = usual.ToRawKubeConfigLoader().Namespace(); err != nil {
		return usageError{err}
	}
	config, err := usual.ToRESTConfig()
	if err != nil {
		return usageError{err}
	}
	p.member, err = connect("this cluster", "--kubeconfig and --context", config, installing{dryRun: p.dryRun})
	return err
}

// picks reports whether Services are picked rather than named.
func (p *picking) picks() bool { return len(p.names) == 0 }

func (p *picking) heading(where string) string {
	if p.dryRun {
		return where + " (dry run: nothing is changed)"
	}
	return where
}

// knowsKinds returns an error that says what to do where the cluster has no ServiceExports.
func (p *picking) knowsKinds(ctx context.Context) error {
	err := p.member.client.List(ctx, &mcsv1beta1.ServiceExportList{}, client.InNamespace(p.namespace), client.Limit(1))
	if isAbsentKind(err) {
		return errors.New("this cluster does not know ServiceExports: have it join a clusterset first (kubectl clusterset join)")
	}
	if err != nil {
		return fmt.Errorf("list ServiceExports of namespace %s: %w", p.namespace, err)
	}
	return nil
}

// services returns what is meant, sorted by name. Services that are derived from imports are never picked.
func (p *picking) services(ctx context.Context) ([]pickedService, error) {
	found := &corev1.ServiceList{}
	if err := p.member.client.List(ctx, found, client.InNamespace(p.namespace)); err != nil {
		return nil, fmt.Errorf("list Services of namespace %s: %w", p.namespace, err)
	}
	var result []pickedService
	for i := range found.Items {
		service := &found.Items[i]
		picked := p.picks() && isOwn(service) && p.labels.Matches(labels.Set(service.Labels))
		if picked || slices.Contains(p.names, service.Name) {
			result = append(result, pickedService{service.Name, service})
		}
	}
	for _, name := range p.names {
		if !slices.ContainsFunc(result, func(s pickedService) bool { return s.name == name }) {
			result = append(result, pickedService{name: name})
		}
	}
	slices.SortFunc(result, func(a, b pickedService) int { return cmp.Compare(a.name, b.name) })
	return result, nil
}
