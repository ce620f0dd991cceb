// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

const aboutGet = `List the exports or imports of the current context's cluster, with data that kubectl get does not show: whether an
export is ready and its conflicts; the clusters that serve an import, and the number of ready endpoints of each.`

const examplesGet = `  kubectl clusterset get imports -A --context east
  kubectl clusterset get exports -n shop -o wide
  kubectl clusterset get imports web cart -n shop -o yaml`

// getting is a get under way.
type getting struct {
	output    format
	everyNS   bool
	namespace string
	names     []string
	member    *cluster
	out, err  io.Writer
}

func newGet(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	g := &getting{out: streams.Out, err: streams.ErrOut}
	cmd := &cobra.Command{
		Use:       "get exports|imports [NAME...]",
		Short:     "list the exports or imports of a cluster",
		Long:      aboutGet,
		Example:   examplesGet,
		Args:      cobra.MinimumNArgs(1),
		ValidArgs: []string{"exports", "imports"},
		RunE: func(cmd *cobra.Command, args []string) error {
			get, ok := map[string]func(context.Context) error{"exports": g.exports, "imports": g.imports}[args[0]]
			if !ok {
				return usageError{fmt.Errorf("get %s: must be exports or imports", args[0])}
			}
			if err := g.connect(usual, args[1:]); err != nil {
				return err
			}
			return get(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&g.everyNS, "all-namespaces", "A", false, "those of all namespaces")
	cmd.Flags().StringVarP((*string)(&g.output), "output", "o", "", "wide, json, yaml or name")
	return cmd
}

func (g *getting) connect(usual *genericclioptions.ConfigFlags, names []string) error {
	if err := g.output.check(formatTable, formatWide, formatJSON, formatYAML, formatName); err != nil {
		return err
	}
	g.names = names
	if g.everyNS && len(names) > 0 {
		return usageError{fmt.Errorf("names are in one namespace: pass either them or -A")}
	}
	if !g.everyNS {
		var err error
		if g.namespace, _, err = usual.ToRawKubeConfigLoader().Namespace(); err != nil {
			return usageError{err}
		}
	}
	config, err := usual.ToRESTConfig()
	if err != nil {
		return usageError{err}
	}
	g.member, err = connect("this cluster", "--kubeconfig and --context", config, installing{})
	return err
}

func (g *getting) exports(ctx context.Context) error {
	list := &mcsv1beta1.ServiceExportList{}
	if err := g.list(ctx, list); err != nil {
		return err
	}
	object := func(e *mcsv1beta1.ServiceExport) client.Object { return e }
	var err error
	if list.Items, err = chosen(g, list.Items, object); err != nil {
		return err
	}
	return g.show("serviceexport.multicluster.x-k8s.io", list, keysOf(list.Items, object), exportTable(list.Items, g.output))
}

func (g *getting) imports(ctx context.Context) error {
	list := &mcsv1beta1.ServiceImportList{}
	if err := g.list(ctx, list); err != nil {
		return err
	}
	object := func(i *mcsv1beta1.ServiceImport) client.Object { return i }
	var err error
	if list.Items, err = chosen(g, list.Items, object); err != nil {
		return err
	}
	counts, err := g.mirrored(ctx)
	if err != nil {
		return err
	}
	return g.show("serviceimport.multicluster.x-k8s.io", list, keysOf(list.Items, object), importTable(list.Items, counts, g.output))
}

// list reads all of a kind.
func (g *getting) list(ctx context.Context, into client.ObjectList) error {
	err := g.member.client.List(ctx, into, client.InNamespace(g.namespace))
	if isAbsentKind(err) {
		return fmt.Errorf("this cluster does not know the Multi-Cluster Services API: have it join a clusterset first (kubectl clusterset join)")
	}
	if err != nil {
		return fmt.Errorf("list %T: %w", into, err)
	}
	return nil
}

// chosen returns the named objects, all where none are named, sorted. A named one that does not exist is an error.
func chosen[T any](g *getting, items []T, object func(*T) client.Object) ([]T, error) {
	result := slices.DeleteFunc(items, func(item T) bool {
		return len(g.names) > 0 && !slices.Contains(g.names, object(&item).GetName())
	})
	for _, name := range g.names {
		if !slices.ContainsFunc(result, func(item T) bool { return object(&item).GetName() == name }) {
			return nil, fmt.Errorf("there is no %s in namespace %s", name, g.namespace)
		}
	}
	slices.SortFunc(result, func(a, b T) int {
		return cmp.Or(cmp.Compare(object(&a).GetNamespace(), object(&b).GetNamespace()), cmp.Compare(object(&a).GetName(), object(&b).GetName()))
	})
	for i := range result {
		object(&result[i]).SetManagedFields(nil)
	}
	return result, nil
}

func keysOf[T any](items []T, object func(*T) client.Object) []client.ObjectKey {
	var keys []client.ObjectKey
	for i := range items {
		keys = append(keys, client.ObjectKeyFromObject(object(&items[i])))
	}
	return keys
}

// show prints what has been found. kind is how -o name calls it.
func (g *getting) show(kind string, list runtime.Object, keys []client.ObjectKey, t *table) error {
	switch {
	case g.output.isData():
		return printData(g.out, g.output, typed(list))
	case g.output == formatName:
		for _, key := range keys {
			fmt.Fprintln(g.out, kind+"/"+key.Name)
		}
	case len(keys) == 0 && g.everyNS:
		fmt.Fprintln(g.err, "There are none.")
	case len(keys) == 0:
		fmt.Fprintf(g.err, "There are none in namespace %s; -A looks in all.\n", g.namespace)
	default:
		t.write(g.out, "")
	}
	return nil
}

// typed returns a list that says what it is, as kubectl prints it.
func typed(list runtime.Object) runtime.Object {
	kind := mcsv1beta1.SchemeGroupVersion.WithKind("ServiceExport")
	switch l := list.(type) {
	case *mcsv1beta1.ServiceExportList:
		for i := range l.Items {
			l.Items[i].SetGroupVersionKind(kind)
		}
	case *mcsv1beta1.ServiceImportList:
		kind.Kind = "ServiceImport"
		for i := range l.Items {
			l.Items[i].SetGroupVersionKind(kind)
		}
	}
	kind.Kind += "List"
	list.GetObjectKind().SetGroupVersionKind(kind)
	return list
}
